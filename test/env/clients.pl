#!/usr/bin/perl
# Makes programs of the pages for clients: clients.pl DIRECTORY PAGE...
#
# Each section "## name" of a page is a program: its blocks of one language, and comments that begin with the language
# ("<!-- java") and hold what the page does not show. Lines keep their numbers. A block that is a file of docs/clients is
# not part of it; each of these files must be shown by a page. The program is DIRECTORY/page_name/main.ext, the other files
# of its language are beside it. What it must print is in "expected": the comments behind its calls of print, or for shell
# commands the blocks of text. Prints the directories, and at the end which files no page shows (exit status 1).
use strict;
use warnings;

my %ext = (python => 'py', js => 'mjs', java => 'java', go => 'go', sh => 'sh');
my %main = (java => 'Main');
my %print = (
	py => qr/^\s*print\(.*\) +# (.*)/,
	mjs => qr/^\s*console\.log\(.*\) +\/\/ (.*)/,
	java => qr/^\s*System\.out\.println\(.*\); +\/\/ (.*)/,
	go => qr/^\s*fmt\.Println\(.*\) +\/\/ (.*)/);
my ($directory, @pages) = @ARGV;
my %unseen = map { (read_file($_) => $_) } grep { !/\.md$/ } glob 'docs/clients/*.*';
my %shown;

sub read_file {
	my ($name) = @_;
	open(my $in, '<', $name) or die "$name: $!\n";
	local $/;
	return scalar <$in>;
}

sub write_file {
	my ($name, $text) = @_;
	open(my $out, '>', $name) or die "$name: $!\n";
	print $out $text;
}

# Writes the program of a section.
sub program {
	my ($page, $section, $ext, $text, $expected) = @_;
	my $name = lc "${page}_$section";
	$name =~ s/[^a-z0-9]+/_/g;
	mkdir "$directory/$name";
	write_file("$directory/$name/" . ($main{$ext} // 'main') . ".$ext", $text);
	write_file("$directory/$name/expected", $expected);
	for my $file (glob "docs/clients/*.$ext") {
		write_file("$directory/$name/" . ($file =~ s/.*\///r), read_file($file));
	}
	print "$name\n";
}

for my $page (@pages) {
	my $stem = $page =~ s/.*\/|\.md$//gr;
	my ($section, $ext, $text, $expected, $block, $kind, $hidden) = ('', '', '', '');
	my $number = 0;
	for (split /^/, read_file($page)) {
		$number++;
		if (!defined $kind && /^## (.*)/) {
			program($stem, $section, $ext, $text, $expected) if $ext;
			($section, $ext, $text, $expected) = ($1, '', "\n" x $number, '');
			next;
		}
		if (!defined $kind && (/^```(\w*)$/ || /^<!-- (\w+)$/)) {
			my $word = $1;
			($kind, $hidden, $block) = ($word, /^</ ? 1 : 0, '');
		} elsif (defined $kind && ($hidden ? /^-->$/ : /^```$/)) {
			if ($unseen{$block}) {
				$shown{$unseen{$block}} = 1;
			} elsif ($ext{$kind}) {
				$ext = $ext{$kind};
				substr($text, -($block =~ tr/\n//)) = $block;
				for my $line (split /^/, $block) {
					$expected .= "$1\n" if $print{$ext} && $line =~ $print{$ext};
				}
			} elsif ($kind eq 'text' && $ext eq 'sh') {
				$expected .= $block;
			}
			undef $kind;
		} elsif (defined $kind) {
			$block .= $_;
		}
		$text .= "\n";
	}
	program($stem, $section, $ext, $text, $expected) if $ext;
}
if (!$ENV{FILTER}) {
	my @missing = grep { !$shown{$_} } values %unseen;
	die "no page shows this file as it is: @missing\n" if @missing;
}
