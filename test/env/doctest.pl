#!/usr/bin/perl
# Runs the examples of a page: each block ```sql is sent to psql, all in one session, and what it prints is compared with the
# block ```text that follows it, if there is one.
#
#   doctest.pl PAGE             prints what differs; exit status 1 if something does
#   doctest.pl --update PAGE    writes what was printed into the page
#
# It needs psql in PATH and the environment that says where to connect to.
use strict;
use warnings;

my $update = @ARGV && $ARGV[0] eq '--update' ? shift : 0;
my $file = shift or die "usage: doctest.pl [--update] PAGE\n";
open(my $in, '<', $file) or die "$file: $!\n";
my @lines = <$in>;
close $in;

# The blocks, and where those of the expected text begin and end.
my (@blocks, $kind, $body, $start);
for my $i (0 .. $#lines) {
	if (!defined $kind && $lines[$i] =~ /^```(\w*)$/) {
		($kind, $body, $start) = ($1, '', $i + 1);
	} elsif (defined $kind && $lines[$i] =~ /^```$/) {
		push @blocks, {sql => $body} if $kind eq 'sql';
		@{$blocks[-1]}{'text', 'start', 'end'} = ($body, $start, $i) if $kind eq 'text' && @blocks;
		undef $kind;
	} elsif (defined $kind) {
		$body .= $lines[$i];
	}
}

my $script = "$file.$$.sql";
$script =~ s{.*/}{($ENV{DP_WORK} || '/tmp') . '/'}e;
open(my $out, '>', $script) or die "$script: $!\n";
print $out "\\pset tuples_only on\n\\pset format unaligned\n";
print $out "\\echo \@\@\@$_\n$blocks[$_]{sql}\n" for 0 .. $#blocks;
close $out;
my $printed = `psql -Xq -v ON_ERROR_STOP=1 -f '$script' 2>&1`;
my $status = $?;
unlink $script;
die "psql failed:\n$printed" if $status != 0;

my %printed;
my $n = -1;
for (split /^/, $printed) {
	if (/^\@\@\@(\d+)$/) { $n = $1; $printed{$n} = ''; } else { $printed{$n} .= $_; }
}
my $wrong = 0;
for my $i (reverse 0 .. $#blocks) {
	my $b = $blocks[$i];
	next if !defined $b->{text} || $b->{text} eq $printed{$i};
	$wrong++;
	if ($update) {
		splice @lines, $b->{start}, $b->{end} - $b->{start}, $printed{$i};
	} else {
		print "$b->{sql}printed:\n$printed{$i}the page has:\n$b->{text}\n";
	}
}
if ($update) {
	open($out, '>', $file) or die "$file: $!\n";
	print $out @lines;
	close $out;
	exit 0;
}
exit($wrong ? 1 : 0);
