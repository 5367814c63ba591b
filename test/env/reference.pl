#!/usr/bin/perl
# The functions in the pages. A heading that is the name of a function, without prose below it,
# begins its entry. What follows up to the first block of SQL, which is its example, is made from
# the catalog: signatures, attributes and COMMENT.
#
#   reference.pl PAGE...             prints what is missing, out of date or without an example
#   reference.pl --update PAGE...    writes the entries, and the index in docs/reference/README.md
#
# It needs psql in PATH, and a database with the extension.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

my $update = @ARGV && $ARGV[0] eq '--update' ? shift : 0;
my $index = 'docs/reference/README.md';

# What users call: the functions of the extension's schema.
my $query = <<'SQL';
SELECT p.proname,
  CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE '' END || p.proname,
  (SELECT coalesce(string_agg(CASE mode WHEN 'v' THEN 'VARIADIC ' ELSE '' END
      || format(CASE value WHEN 'NULL' THEN '[%s%s]' ELSE '%s%s%s' END,
        quote_ident(nullif(argument, '')) || ' ', type, ' DEFAULT ' || value),
      e'\x01' ORDER BY n) FILTER (WHERE mode IN ('i', 'b', 'v')), '') || e'\x02'
    || coalesce(string_agg(quote_ident(argument) || ' ' || type, e'\x01' ORDER BY n)
      FILTER (WHERE mode IN ('o', 't')), '')
    FROM (SELECT n, coalesce(p.proargmodes[n], 'i') AS mode, p.proargnames[n] AS argument,
        replace(replace(format_type(types[n], NULL), 'timestamp with time zone', 'timestamptz'),
          'timestamp without time zone', 'timestamp') AS type,
        regexp_replace(pg_get_function_arg_default(p.oid, n), '::[a-z_ ]+(\[\])?$', '') AS value
      FROM (SELECT coalesce(p.proallargtypes,
        string_to_array(p.proargtypes::text, ' ')::oid[]) AS types) t,
        generate_series(1, cardinality(types)) n OFFSET 0) a),
  CASE WHEN p.proretset THEN 'setof ' ELSE '' END || CASE WHEN p.prokind = 'p' THEN ''
    ELSE replace(replace(format_type(p.prorettype, NULL), 'timestamp with time zone',
      'timestamptz'), 'timestamp without time zone', 'timestamp') END
    || coalesce((SELECT ' (' || string_agg(quote_ident(attname) || ' '
        || format_type(atttypid, NULL), ', ' ORDER BY attnum) || ')'
      FROM pg_attribute JOIN pg_type t ON t.typrelid = attrelid
      WHERE t.oid = p.prorettype AND attnum > 0), ''),
  concat_ws(' ', CASE p.prokind WHEN 'a' THEN 'AGGREGATE' WHEN 'w' THEN 'WINDOW' END,
    CASE WHEN p.prokind = 'a' THEN '' WHEN p.provolatile = 'i' THEN 'IMMUTABLE'
      WHEN p.provolatile = 's' THEN 'STABLE' END,
    CASE WHEN p.proisstrict THEN 'STRICT' END),
  regexp_replace(coalesce(obj_description(p.oid, 'pg_proc'), ''), '\s+', ' ', 'g')
FROM pg_proc p JOIN pg_extension e ON e.extname = 'docpatterns' AND p.pronamespace = e.extnamespace
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    AND d.refobjid = e.oid
-- sql/untyped.sql says what these are
WHERE NOT EXISTS (SELECT FROM pg_proc o WHERE o.pronamespace = p.pronamespace
  AND o.proname = p.proname AND o.prokind = 'f' AND o.prosrc = p.prosrc
  AND '"any"'::regtype = ANY (o.proargtypes)
  AND '"any"'::regtype <> ALL (p.proargtypes))
ORDER BY p.proname, p.pronargs, p.oid
SQL

# Each function's overloads: its signature as text, its comment.
my %functions;
open(my $psql, '-|', 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-F', "\t", '-c', $query) or die;
while (<$psql>) {
	chomp;
	my ($name, $call, $arguments, $result, $attributes, $comment) = split /\t/;
	my ($in, $out) = split /\x02/, $arguments // "\x02", -1;
	my @in = split /\x01/, $in // '';
	my @out = split /\x01/, $out // '';
	$result =~ s/record$/'(' . join(', ', @out) . ')'/e if @out;
	my $text = wrap($call . '(', [@in], ')' . ($result eq '' ? '' : " → $result"));
	$attributes =~ s/^ | (?= )| $//g;
	$attributes .= "\n" if $attributes ne '';
	push @{$functions{$name}}, {text => $text, attributes => $attributes, comment => prose($comment)};
}
close $psql;
%functions or die "no function was found\n";

# A signature in lines of at most 100 columns.
sub wrap {
	my ($line, $arguments, $end) = @_;
	my $text = '';
	my @pieces = map { $arguments->[$_] . ($_ < $#$arguments ? ', ' : '') } 0 .. $#$arguments;
	push @pieces, split /(?<=, )|(?= → )/, $end;
	for my $piece (@pieces) {
		(my $visible = $piece) =~ s/ $//;
		if (length($line) + length($visible) > 100) {
			$text .= $line =~ s/ $//r . "\n";
			$line = '    ';
			$piece =~ s/^ //;
		}
		$line .= $piece;
	}
	return "$text$line\n";
}

# A comment as a paragraph of Markdown: names and codes are marked, lines have at most 100 columns.
sub prose {
	my $text = shift;
	$text = ucfirst $text if $text !~ /^\w*_/;
	$text .= '.' if $text ne '' && $text !~ /\.$/;
	$text =~ s/(
		\b\w+\ =>\ (?:\w+|'[^']*') | (?<!\w)'[^']*'
		| [\w.]*<[\w>.<]*>(?:[\w.]*\w)? | \$\$?\w[\w.\$]* | \w*[a-z0-9]_\w*(?:\([^()]*\))? | \b_\w+
		| \b[a-z]\w*\(\) | \b(?=\d*[A-Z])(?=[A-Z]*\d)[0-9A-Z]{5}\b | \b[0-9]{5}\b
		| ->>? | [<>]=?(?=\s) | \*
	)/`$1`/gx;
	my ($out, $line) = ('', '');
	while ($text =~ /((?:`[^`]*`|[^`\s])+)/g) {
		if ($line ne '' && length("$line $1") > 100) {
			$out .= "$line\n";
			$line = '';
		}
		$line .= ($line eq '' ? '' : ' ') . $1;
	}
	return "$out$line\n";
}

# An entry without its heading and example: overloads of one comment share its paragraph, those
# that follow each other also a line of attributes.
sub entry {
	my $text = '';
	my @overloads = @{$functions{$_[0]}};
	while (my $o = shift @overloads) {
		$text .= "\n```\n$o->{text}";
		while (@overloads && $overloads[0]{comment} eq $o->{comment}) {
			$text .= $o->{attributes} if $overloads[0]{attributes} ne $o->{attributes};
			$o = shift @overloads;
			$text .= $o->{text};
		}
		$text .= "$o->{attributes}```\n\n$o->{comment}";
	}
	return "$text\n";
}

my $wrong = 0;
sub complain { print "@_\n"; $wrong = 1; }

my %found;
for my $page (@ARGV) {
	open(my $in, '<', $page) or die "$page: $!\n";
	my $text = do { local $/; <$in> };
	close $in;
	my $new = '';
	for my $part (split /^(?=#{2,4} )/m, $text) {
		if ($part =~ /^(#{2,4} ([a-z][a-z0-9_]*)\n)(\n*(?:```|<!-- sql).*)/s) {
			my ($heading, $name, $body) = ($1, $2, $3);
			if (!$functions{$name}) {
				complain("$page: there is no function $name");
			} else {
				complain("$name has two entries: $found{$name} and $page") if $found{$name};
				$found{$name} = $page;
				my ($old, $example) = $body =~ /^(.*?)(^(?:```sql(?: citus)?|<!-- sql)\n.*)?\z/ms;
				$example //= '';
				my $sql = join '', $example =~ /^```sql(?: citus)?\n(.*?)^```$/msg;
				complain("$page: $name has no example") if $sql !~ /\b$name\b/;
				complain("$page: the entry of $name is not what the catalog says (make reference)")
				  if !$update && $old ne entry($name);
				$part = $heading . entry($name) . $example;
			}
		}
		$new .= $part;
	}
	write_page($page, $new) if $update && $new ne $text;
}
for my $name (sort keys %functions) {
	complain("$name has no entry") if !$found{$name};
}

# The index: all functions in the order of the alphabet, by their first word.
my (%stems, $list);
for my $name (sort keys %found) {
	my $link = $found{$name} =~ s{^docs/reference/}{}r;
	$link =~ s{^docs/}{../};
	push @{$stems{$name =~ s/_.*//r}}, "[`$name`]($link#$name)";
}
$list = join '', map { "- **$_**: " . join(",\n  ", @{$stems{$_}}) . "\n" } sort keys %stems;
open(my $in, '<', $index) or die "$index: $!\n";
my $text = do { local $/; <$in> };
close $in;
(my $new = $text) =~ s/(<!-- functions -->\n).*(<!-- end -->)/$1\n$list\n$2/s;
complain("$index is out of date (make reference)") if !$update && $new ne $text;
write_page($index, $new) if $update && $new ne $text;
exit $wrong;

sub write_page {
	my ($page, $text) = @_;
	open(my $out, '>', $page) or die "$page: $!\n";
	print $out $text;
	close $out;
}
