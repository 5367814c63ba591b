#!/usr/bin/perl
# Compares each block ```text of a page with what the block ```sql (or ```sql citus) before it printed, in the log that the docs suite
# (run-lib.sh) leaves: a line @@@N begins what the block at line N printed.
#
#   doctest.pl PAGE LOG             prints what differs; exit status 1 if something does
#   doctest.pl --update PAGE LOG    writes what was printed into the page
use strict;
use warnings;

my $update = @ARGV && $ARGV[0] eq '--update' ? shift : 0;
my ($file, $log) = @ARGV;
sub lines { open(my $in, '<', $_[0]) or die "$_[0]: $!\n"; return <$in> }

my (%printed, $n);
for (lines($log)) {
	if (/^\@\@\@(\d+)$/) { $n = $1; $printed{$n} = ''; } elsif (defined $n) { $printed{$n} .= $_; }
}

my ($page, $sql, $block, $text, $wrong) = ('', 0, '', undef, 0);
my $number = 0;
for (lines($file)) {
	$number++;
	if (defined $text && /^```$/) {
		my $found = $printed{$sql} // $text;    # a block that was skipped printed nothing
		if ($found ne $text) {
			$wrong = 1;
			print "line $sql printed:\n${found}the page has:\n$text\n" unless $update;
		}
		$page .= "$found```\n";
		($text, $block) = (undef, '');
		next;
	}
	if (defined $text) { $text .= $_; next; }
	$page .= $_;
	if ($block eq '' && /^```(\w+)( citus)?$/) {
		$block = $1;
		$text = '' if $block eq 'text' && $sql;
		$sql = $block eq 'sql' ? $number : 0 if !defined $text;
	} elsif (/^```$/) {
		$block = '';
	}
}
if ($update) {
	open(my $out, '>', $file) or die "$file: $!\n";
	print $out $page;
	exit 0;
}
exit $wrong;
