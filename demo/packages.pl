#!/usr/bin/perl
# Turns Debian's package catalogue (the control paragraphs that "apt-cache dumpavail" prints, or /var/lib/dpkg/status) into
# one JSON document a line: every field is kept; relations, tags, people and sizes get the structure that they have.
#
#   packages.pl [EXPECTED] <paragraphs >documents      EXPECTED: how many will come, for the progress shown on stderr
#
#   Depends: libc6 (>= 2.34), debconf (>= 0.5) | debconf-2.0
#     "depends": [{"name": "libc6", "op": ">=", "version": "2.34"},
#                 {"name": "debconf", "op": ">=", "version": "0.5", "or": [{"name": "debconf-2.0"}]}]
#   Tag: role::program, use::downloading
#     "tags": {"role": ["program"], "use": ["downloading"]}
#
# Needs nothing but the perl that every Debian has.
use strict;
use warnings;

my $expected = shift // 0;
my $tty = -t STDERR;
my %is_relation = map { $_ => 1 } qw(depends pre_depends recommends suggests conflicts breaks replaces provides enhances
	built_using static_built_using x_cargo_built_using javascript_built_using);
my %is_number = map { $_ => 1 } qw(size installed_size);
my %is_flag = map { $_ => 1 } qw(essential important protected build_essential);
my %is_person = map { $_ => 1 } qw(maintainer original_maintainer);

# A JSON string of some text in UTF-8; bytes that are not UTF-8 are taken for Latin-1.
sub text {
	my ($s) = @_;
	utf8::decode($s);
	$s =~ s/([\\"])/\\$1/g;
	$s =~ s/\n/\\n/g;
	$s =~ s/([\x00-\x1f\x7f])/sprintf '\\u%04x', ord $1/ge;
	utf8::encode($s);
	return "\"$s\"";
}

sub object { return '{' . join(', ', @_) . '}' }
sub array { return '[' . join(', ', @_) . ']' }

# The members of one package in a relation: "perl:any (>= 5.36) [amd64]" has an architecture after the colon.
sub package_members {
	my ($s) = @_;
	$s =~ /^([^\s:()\[]+)(?::([^\s()]+))?\s*(?:\(\s*([<>=]+)\s*([^)]*?)\s*\))?\s*(.*)$/s or return '"name": ' . text($s);
	my @members = ('"name": ' . text($1));
	push @members, '"arch": ' . text($2) if defined $2;
	push @members, '"op": ' . text($3), '"version": ' . text($4) if defined $3;
	push @members, '"when": ' . text($5) if length $5;
	return @members;
}

sub relation {
	my ($s) = @_;
	my @entries;
	for my $entry (grep { length } split /\s*,\s*/, $s) {
		my ($first, @others) = split /\s*\|\s*/, $entry;
		my @members = package_members($first);
		push @members, '"or": ' . array(map { object(package_members($_)) } @others) if @others;
		push @entries, object(@members);
	}
	return array(@entries);
}

sub tags {
	my ($s) = @_;
	my (%values, @facets);
	for my $tag (split /\s*,\s*/, $s) {
		my ($facet, $value) = split /::/, $tag, 2;
		push @facets, $facet unless $values{$facet};
		push @{$values{$facet}}, $value // '';
	}
	return object(map { text($_) . ': ' . array(map { text($_) } @{$values{$_}}) } @facets);
}

sub person {
	my ($s) = @_;
	return text($s) unless $s =~ /^(.*?)\s*<([^>]*)>$/s;
	return object('"name": ' . text($1), '"email": ' . text($2));
}

sub source {
	my ($s) = @_;
	return text($s) unless $s =~ /^(\S+)\s+\(([^)]*)\)$/;
	return object('"name": ' . text($1), '"version": ' . text($2));
}

# One paragraph as a document; the package's name becomes _id. A package that is there for two architectures (multiarch)
# keeps its bare name for the first.
my %seen;
sub document {
	my ($paragraph) = @_;
	my ($id, $arch, @members, @fields);
	for my $line (split /\n/, $paragraph) {
		if ($line =~ /^[ \t]+(.*)/) {		# the field goes on; a lone dot is an empty line
			$fields[-1][1] .= "\n" . ($1 eq '.' ? '' : $1) if @fields;
		} elsif ($line =~ /^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)$/) {
			push @fields, [$1, $2];
		}
	}
	for my $field (@fields) {
		my ($name, $value) = @$field;
		(my $key = lc $name) =~ tr/-/_/;
		if ($key eq 'package') { $id = $value; next }
		$arch = $value if $key eq 'architecture';
		my $json =
			  $is_relation{$key}                        ? relation($value)
			: $is_number{$key} && $value =~ /^[0-9]+$/ ? $value
			: $is_flag{$key}                            ? ($value eq 'yes' ? 'true' : 'false')
			: $is_person{$key}                          ? person($value)
			: $key eq 'source'                          ? source($value)
			: $key eq 'tag'                             ? tags($value)
			:                                             text($value);
		push @members, text($key eq 'tag' ? 'tags' : $key) . ": $json";
	}
	return undef unless defined $id;
	$id .= ':' . ($arch // '') if $seen{$id};
	return undef if $seen{$id}++;
	return object('"_id": ' . text($id), @members);
}

sub progress {
	my ($n, $end) = @_;
	return unless $tty || $end;
	my $share = $expected ? sprintf(' %3d %%', 100 * $n / $expected) : '';
	printf STDERR "%s   %d documents%s%s", $tty ? "\r" : '', $n, $share, $end ? "\n" : '';
}

local $/ = '';
my $n = 0;
while (my $paragraph = <STDIN>) {
	my $document = document($paragraph);
	next unless defined $document;
	print $document, "\n" or exit 1;
	progress($n, 0) if ++$n % 1000 == 0;
}
progress($n, 1);
