#!/usr/bin/perl
# Checks which files of src/ use which others: by the symbols of the objects and by #include. Checks also
# that the kit, in src/ and sql/, names no pattern in a string.
#
#   test/env/arrows.pl [--rooms | --files]
#
# Prints each use that goes up or sideways between rooms, each cycle of headers and each name of a pattern;
# nothing if there is none. --rooms prints all arrows between rooms instead, --files all arrows between files.
# docs/developing.md says what the rooms are for. Objects must have been built.
use strict;
use warnings;
use File::Find;

my $what = shift // '';
my (@objects, @sources);
find({ no_chdir => 1, wanted => sub { push @objects, $_ if /\.o$/; push @sources, $_ if /\.[ch]$/ } }, 'src');
@objects or die "nothing has been built\n";

# A room is a folder of src/; src/kit is one with what lies below it. A file below src/ itself is
# either for all or, as the module, above all.
sub room {
	my ($file) = @_;
	return 'all' if $file =~ m{^src/dp(_compat)?\.h$};
	return 'module' if $file =~ m{^src/([^/]+|patterns/patterns\.h)$};
	return 'kit' if $file =~ m{^src/kit/};
	return $file =~ m{^src/(.*)/} ? $1 : die;
}

my %floor = (all => 0, bson => 1, mql => 2, 'mql/pipeline' => 3, 'index/stats' => 3, index => 4, kit => 5, module => 7);
sub floor_of {
	my ($room) = @_;
	return $floor{$room} // ($room =~ m{^types/} ? 3 : $room =~ m{^patterns/} ? 6 : die "src/$room is no room");
}

# What the objects define and use. A symbol whose letter is small is of its own file only.
my (%defined, %wanted, %arrows);
for my $object (sort @objects) {
	(my $source = $object) =~ s/\.o$/.c/;
	-e $source or next;
	for (`nm $object`) {
		$defined{$2} = $source if /^[0-9a-f]+ ([TDBRCVW]) (\S+)$/;
		push @{ $wanted{$source} }, $1 if /^ +U (\S+)$/;
	}
}
for my $source (keys %wanted) {
	for (@{ $wanted{$source} }) {
		my $other = $defined{$_};
		$arrows{$source}{$other}{$_} = 1 if defined $other && $other ne $source;
	}
}
my %headers;
for my $source (@sources) {
	open my $in, '<', $source or die;
	while (<$in>) {
		my ($header) = /^#include "([^"]+)"/;
		$header && -e "src/$header" or next;
		$arrows{$source}{"src/$header"}{'#include'} = 1;
		$headers{$source}{"src/$header"} = 1 if $source =~ /\.h$/;
	}
}

my %between;
for my $from (sort keys %arrows) {
	for my $to (sort keys %{ $arrows{$from} }) {
		my ($above, $below) = (room($from), room($to));
		my $names = join ' ', sort keys %{ $arrows{$from}{$to} };
		print "$from -> $to: $names\n" if $what eq '--files';
		next if $above eq $below;
		$between{"$above -> $below"}++;
		print "$from -> $to: $names\n" if !$what && floor_of($below) >= floor_of($above);
	}
}
if ($what eq '--rooms') {
	print "$_: $between{$_}\n" for sort keys %between;
}

# Headers that include none that is left are taken away again and again: what stays is a cycle, or
# leads to one.
my $taken = 1;
while ($taken) {
	$taken = 0;
	for my $header (keys %headers) {
		next if grep { $headers{$_} } keys %{ $headers{$header} };
		delete $headers{$header};
		$taken = 1;
	}
}
print "$_ is in a cycle of headers, or leads to one\n" for $what ? () : sort keys %headers;
exit if $what;

# Strings of C and the text of SQL, without comments. Names of the catalog, as pg_attribute, are none of ours.
sub slurp {
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	local $/;
	return <$in>;
}
my $names = join '|', slurp('src/patterns/patterns.h') =~ /^DP_PATTERN\((\w+)\)/mg;
for my $file (sort((grep m{^src/kit/}, @sources), glob 'sql/kit/*.sql')) {
	my $text = slurp($file);
	if ($file =~ /\.sql$/) {
		$text =~ s/--.*//g;
	} else {
		$text =~ s{/\*.*?\*/|^#include[^\n]*}{$& =~ s/[^\n]//gr}gmse;
		$text = join "\n", map { join ' ', /"((?:[^"\\]|\\.)*)"/g } split /\n/, $text;
	}
	my $line = 0;
	for (split /\n/, $text) {
		$line++;
		s/\b(pg_\w+|create_reference_table)//g;
		print "$file:$line names the pattern $1\n" while /(?<![A-Za-z])($names)(?![A-Za-z])/g;
	}
}
