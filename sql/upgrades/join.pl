#!/usr/bin/perl
# Prints the script that upgrades the extension from one version to another.
#
#   join.pl FROM TO PART...
#
# The steps beside this file, docpatterns--A--B.sql for each two releases that follow each other, are joined from FROM to TO.
# A step holds what it takes to get there, and does not repeat what stands in the parts of the install script (PART..., in their
# order): a line of it that begins with \take is replaced by statements of theirs.
#
#   \take part sql/graph.sql               a whole part
#   \take FUNCTION bson_size               everything about the functions of that name: CREATE, ALTER, COMMENT ON, GRANT, REVOKE
#   \take FUNCTION bson_size(bson)         only where the arguments are written like this
#   \take OPERATOR @@ (bson, bson)         an operator, with the types of both sides
#   \take CAST (bson AS jsonb)             and so on: AGGREGATE, TYPE, VIEW, OPERATOR CLASS, ...
#   \take COMMENT FUNCTION bson_size       no more than the comments
#
# Functions, procedures, aggregates and views come as CREATE OR REPLACE, so that what exists is replaced and keeps its OID. A line
# that finds nothing is an error, and so is a version that no step leads away from.
use strict;
use warnings;

die "usage: join.pl FROM TO PART...\n" if @ARGV < 3;
my ($from, $to, @parts) = @ARGV;
my ($dir) = $0 =~ m{^(.*)/} or die "join.pl: call it by a path\n";
my (%part, @statements);

for my $name (@parts) {
	$part{$name} = slurp($name);
	push @statements, split_statements($part{$name});
}

my ($version, %seen) = ($from);
my $script = qq{\\echo Use "ALTER EXTENSION docpatterns UPDATE" to load this file. \\quit\n};
while ($version ne $to) {
	die "join.pl: the steps from $from form a cycle\n" if $seen{$version}++;
	my @steps = glob "$dir/docpatterns--$version--*.sql";
	die "join.pl: there should be one step from $version, and there are " . @steps . "\n" if @steps != 1;
	my ($next) = $steps[0] =~ /--([^-]+(?:-[^-]+)*)\.sql$/;
	my $step = slurp($steps[0]);
	$step =~ s{^\\take[ \t]+(.*?)[ \t]*$}{taken($1, $steps[0])}gem;
	$script .= "\n-- $version to $next\n$step";
	$version = $next;
}
print $script;

sub slurp {
	my ($name) = @_;
	open my $file, '<', $name or die "join.pl: $name: $!\n";
	local $/;
	return scalar <$file>;
}

# What a line with \take stands for.
sub taken {
	my ($what, $step) = @_;
	if ($what =~ /^part\s+(\S+)$/) {
		return $part{$1} // die "join.pl: $step: $1 is not a part of the install script\n";
	}
	my $verbs = $what =~ s/^COMMENT\s+// ? 'COMMENT\s+ON' : '(?:CREATE(?:\s+OR\s+REPLACE)?|ALTER|COMMENT\s+ON|(?:GRANT|REVOKE)\s[^;]*?\sON)';
	my ($kind, $name, $arguments) = $what =~ /^((?:[A-Z]+\s+)+?)([^\s(]+)?\s*(\(.*\))?$/
		or die "join.pl: $step: cannot read \\take $what\n";
	(my $words = $kind) =~ s/\s+/\\s+/g;
	my $pattern = "^$verbs\\s+$words" . (defined $name ? quotemeta($name) . '(?=[\s(;]|$)' : '');
	my @found = grep { $_ =~ /$pattern/ } @statements;
	if (defined $arguments) {
		my $wanted = squeeze($arguments);
		my ($left, $right) = $arguments =~ /^\(\s*(\S+)\s*,\s*(\S+)\s*\)$/;
		@found = grep {
			my $given = squeeze($_);
			$kind =~ /^OPERATOR\s*$/ && $given =~ /^CREATE/
				? defined $left && argument($given, 'LEFTARG') eq $left && argument($given, 'RIGHTARG') eq $right
				: index($given, squeeze($name // '') . $wanted) >= 0 || index($given, $wanted) >= 0 && !defined $name;
		} @found;
	}
	die "join.pl: $step: the parts have no $what\n" unless @found;
	s/^CREATE\s+(?=(?:FUNCTION|PROCEDURE|AGGREGATE|VIEW)\s)/CREATE OR REPLACE / for @found;
	return join "\n", @found;
}

# Without space where it does not matter for comparing arguments.
sub squeeze {
	my ($text) = @_;
	$text =~ s/\s+/ /g;
	$text =~ s/ ?([(),]) ?/$1/g;
	return $text;
}

# What CREATE OPERATOR says of one of its sides.
sub argument {
	my ($statement, $side) = @_;
	return $statement =~ /\b$side = ([^,\)]+?)(?=[,\)])/ ? $1 : 'NONE';
}

# The statements of a text of SQL, each with its semicolon and without the comments before it.
sub split_statements {
	my ($text) = @_;
	my ($depth, $body, $statement, @all) = (0, 0, '');
	pos($text) = 0;
	while (pos($text) < length $text) {
		if ($text =~ /\G--[^\n]*\n?/gc || $text =~ m{\G/\*.*?\*/}gcs) {
			$statement .= $& if $statement =~ /\S/;
		} elsif ($text =~ /\G(\$(?:[A-Za-z_]\w*)?\$).*?\1/gcs || $text =~ /\G'(?:[^']|'')*'/gc || $text =~ /\G"[^"]*"/gc) {
			$statement .= $&;
		} elsif ($text =~ /\G[A-Za-z_]\w*/gc) {
			my $word = uc $&;
			$statement .= $&;
			# a body that begins with BEGIN ATOMIC has semicolons of its own
			$body = 1 if $word eq 'ATOMIC';
			$depth++ if $body && ($word eq 'ATOMIC' || $word eq 'CASE');
			$depth-- if $body && $word eq 'END';
			$body = 0 if $depth == 0;
		} elsif ($text =~ /\G./gcs) {
			$statement .= $&;
			if ($& eq ';' && $depth == 0) {
				$statement =~ s/^\s+//;
				push @all, "$statement\n";
				$statement = '';
			}
		}
	}
	die "join.pl: a part ends inside of a statement\n" if $statement =~ /\S/;
	return @all;
}
