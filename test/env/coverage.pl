#!/usr/bin/perl
# Adds up what gcov wrote: which lines, functions and branches of src/ ran, and which reports of errors were reached.
#
#   coverage.pl LISTINGS REPORT       LISTINGS holds the *.gcov files of gcov -b -c -p; in REPORT are written
#
#     index.txt      a line a file, a line a directory, the total
#     functions.txt  the functions that were never called
#     errors.txt     the reports of errors that were never reached, by kind, with SQLSTATE and message
#     branches.txt   the lines that ran and have a branch that was never taken
#
# Not counted as branches are those inside of macros that stand for one thing in the source: ereport and elog with their
# arguments, PG_TRY and what belongs to it, CHECK_FOR_INTERRUPTS, foreach, and the macros that read a varlena's header.
#
# A report of an error is an ereport, elog or dp_ereturn with the level ERROR, or a call of a function of ours that raises: one
# that is declared not to return, or one that takes the SQLSTATE as an argument.
use strict;
use warnings;

die "usage: coverage.pl LISTINGS REPORT\n" if @ARGV != 2;
my ($listings, $report) = @ARGV;

my $macro = qr/\b(?:ereport|elog|dp_ereturn|PG_(?:TRY|CATCH|FINALLY|END_TRY|FREE_IF_COPY)|CHECK_FOR_INTERRUPTS
	|foreach\w*|for_each_\w+|forboth|DP_FUNCTION|VAR(?:SIZE|DATA|ATT)_\w+)\s*\(/x;

# the kinds of errors, in the order of the report; the first that fits is taken
my @kinds = (
	['cannot happen (elog)', sub { $_[0] eq 'elog' }],
	['bytes are bad', sub { $_[0] =~ /DATA_CORRUPTED/ }],
	['memory, or a fault of ours', sub { $_[0] =~ /OUT_OF_MEMORY|INTERNAL_ERROR/ }],
	['two transactions meet', sub { $_[0] =~ /T_R_|LOCK_NOT_AVAILABLE/ }],
	['a trigger function is called by hand', sub { $_[0] =~ /TRIGGER_PROTOCOL/ }],
	['a user can reach it', sub { 1 }]);

my (%file, %raises, @errors, @uncalled, @branches, %kind_sites, %kind_reached);

for my $listing (glob "$listings/*.gcov") {
	(my $name = $listing) =~ s{.*/|\.gcov$}{}g;
	$name =~ s{#}{/}g;
	$file{$name} = read_listing($listing) if $name =~ m{^src/};
}
die "coverage.pl: there are no listings in $listings\n" if !%file;
find_raisers($_) for values %file;
find_states($_) for values %file;
count_file($_) for sort keys %file;
write_index();
write_list('functions.txt', map { "$_->[0]:$_->[1] $_->[2]" } @uncalled);
write_list('branches.txt', @branches);
write_errors();

# Returns what a listing says: for each line its text, how often it ran (undef: no code) and its branches; and the functions.
sub read_listing {
	my ($listing) = @_;
	my (@lines, @functions, @unplaced, $line, $in_copy, $after_rule, $n);

	open my $in, '<', $listing or die "$listing: $!\n";
	while (<$in>) {
		# a function of a header that several files have is shown once for all, then once for each, between rules
		if (/^-{10,}$/) { $after_rule = 1; next }
		if ($after_rule) { $in_copy = /^\S.*:$/; $after_rule = 0 }
		if (/^function (\S+) called (\d+)/) {
			push @unplaced, {name => $1, called => $2};
		} elsif (/^\s*([-#=]+|\d+\*?):\s*(\d+):(.*)/s) {
			($line, my $count, my $text) = ($2, $1, $3);
			next if $line == 0;
			$n = 0;
			$lines[$line]{text} = $text;
			$count = $count eq '-' ? undef : $count =~ /(\d+)/ ? $1 : 0;
			$lines[$line]{count} = $count if !$in_copy;
			# a function of a header, once for each file that has it
			for my $f (splice @unplaced) {
				my ($same) = grep { $_->{name} eq $f->{name} } @functions;
				if ($same) { $same->{called} += $f->{called} } else { push @functions, {%$f, line => $line} }
			}
		} elsif (/^branch\s+\d+ (?:taken (\d+)|never executed)/) {
			$lines[$line]{branches}[$n++] += $1 // 0;
		}
	}
	close $in;
	return {lines => \@lines, functions => \@functions};
}

# Notes the functions of a file that raise whatever they are called with.
sub find_raisers {
	my ($file) = @_;
	my $head = '';

	for my $line (@{$file->{lines}}) {
		my $text = $line->{text} // '';
		$raises{$1} //= $1 if $text =~ /\b(\w+)\(.*pg_attribute_noreturn\(\)/;
		$head = $1 if $text =~ /^(\w+)\(/;
		$raises{$head} //= $head if $head ne '' && $text =~ /\berrcode\((?!ERRCODE_)\w+\)/ && $text !~ /\?/;
	}
}

# Notes with which SQLSTATE they raise, where it is always the same.
sub find_states {
	my ($file) = @_;
	my $head = '';

	for my $line (@{$file->{lines}}) {
		my $text = $line->{text} // '';
		$head = $1 if $text =~ /^(\w+)\(/;
		$raises{$head} = $1 if $raises{$head} && $text =~ /\berrcode\(ERRCODE_(\w+)\)/;
	}
}

# Adds a file to the sums and its gaps to the lists.
sub count_file {
	my ($name) = @_;
	my $file = $file{$name};
	my $lines = $file->{lines};
	my %sum = map { $_ => 0 } qw(lines lines_run functions functions_run branches branches_run macros);

	for my $f (@{$file->{functions}}) {
		# the record that DP_FUNCTION makes is a function too
		next if $f->{name} =~ /^pg_finfo_/;
		$sum{functions}++;
		if ($f->{called} > 0) { $sum{functions_run}++ } else { push @uncalled, [$name, $f->{line}, $f->{name}] }
	}
	for my $i (1 .. $#$lines) {
		my $line = $lines->[$i] // {};
		next if !defined $line->{count} || $line->{text} =~ /\bDP_FUNCTION\(/;
		$sum{lines}++;
		$sum{lines_run}++ if $line->{count} > 0;
		note_error($name, $i, $lines);
		my $branches = $line->{branches} or next;
		if ($line->{text} =~ $macro) { $sum{macros} += @$branches; next }
		my $taken = grep { $_ > 0 } @$branches;
		$sum{branches} += @$branches;
		$sum{branches_run} += $taken;
		push @branches, "$name:$i: " . (@$branches - $taken) . ' of ' . @$branches . ': ' . squeeze($line->{text})
			if $taken < @$branches && $line->{count} > 0;
	}
	$file->{sum} = \%sum;
}

# Notes the report of an error that begins in a line, if one does.
sub note_error {
	my ($name, $i, $lines) = @_;
	my $text = $lines->[$i]{text};
	my ($what, $call, $state, $message);

	if ($text =~ /\b(ereport|elog|dp_ereturn)\s*\(/) {
		$what = $1;
		$call = statement($i, $lines);
		return if $what ne 'dp_ereturn' && $call !~ /\b$what\s*\(ERROR\b/;
		$state = $what eq 'elog' ? 'elog' : $call =~ /errcode\((.*?)\)/ ? $1 : 'XX000';
		$state =~ s/ERRCODE_//g;
	} elsif ($text =~ /^\t.*?\b(\w+)\(/ && $text !~ /pg_attribute_noreturn/) {
		my ($raiser) = grep { $raises{$_} } $text =~ /\b(\w+)\(/g;
		return if !$raiser;
		$call = statement($i, $lines);
		$state = $call =~ /(ERRCODE_\w+)/ ? $1 : $raises{$raiser};
		$state =~ s/ERRCODE_//;
	} else {
		return;
	}
	$message = $call =~ /"((?:[^"\\]|\\.)*)"/ ? $1 : '';
	for my $kind (@kinds) {
		next if !$kind->[1]->($state);
		$kind_sites{$kind->[0]}++;
		if ($lines->[$i]{count} > 0) { $kind_reached{$kind->[0]}++ }
		else { push @errors, [$kind->[0], "$name:$i", $state, $message] }
		last;
	}
}

# Returns the statement that begins in a line: up to its last parenthesis.
sub statement {
	my ($i, $lines) = @_;
	my ($text, $depth) = ('', 0);

	for (; $i < @$lines; $i++) {
		my $part = $lines->[$i]{text} // '';
		$text .= $part;
		$part =~ s/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'//g;
		$depth += ($part =~ tr/(//) - ($part =~ tr/)//);
		last if $depth <= 0;
	}
	return squeeze($text);
}

sub squeeze {
	my ($text) = @_;
	$text =~ s/\s+/ /g;
	$text =~ s/^ | $//g;
	return $text;
}

# One line of the table: so many of so many, and their share.
sub row {
	my ($name, $sum) = @_;
	return sprintf("%-38s", $name) . join('', map {
		my ($all, $run) = ($sum->{$_}, $sum->{"${_}_run"});
		sprintf("%7d of %6d %5s%%", $run, $all, $all ? sprintf('%.1f', 100 * $run / $all) : '-');
	} qw(lines functions branches)) . sprintf("%8d\n", $sum->{macros});
}

sub write_index {
	my (%dir, %total);

	open my $out, '>', "$report/index.txt" or die "$report/index.txt: $!\n";
	my $head = sprintf("%-38s%23s%23s%23s%8s\n", 'file', 'lines run', 'functions called', 'branches taken', 'macros');
	print $out $head;
	for my $name (sort keys %file) {
		my $sum = $file{$name}{sum};
		print $out row($name, $sum);
		(my $dir = $name) =~ s{[^/]*$}{};
		$dir{$dir}{$_} += $sum->{$_} for keys %$sum;
		$total{$_} += $sum->{$_} for keys %$sum;
	}
	my $sums = "\n" . $head . join('', map { row($_, $dir{$_}) } sort keys %dir) . row('total', \%total);
	$sums .= sprintf("\n%-38s%23s\n", 'reports of errors', 'reached');
	for my $kind (map { $_->[0] } @kinds) {
		$sums .= sprintf("%-38s%9d of %6d\n", $kind, $kind_reached{$kind} // 0, $kind_sites{$kind} // 0) if $kind_sites{$kind};
	}
	$sums .= "\nmacros: branches inside of macros, which are in no other column\n";
	print $out $sums;
	close $out or die "$report/index.txt: $!\n";
	print $sums;
}

sub write_errors {
	my @text;

	for my $kind (map { $_->[0] } @kinds) {
		my @of_kind = grep { $_->[0] eq $kind } @errors or next;
		push @text, '' if @text;
		push @text, "$kind: " . @of_kind;
		push @text, map { "  $_->[1] $_->[2]: $_->[3]" } @of_kind;
	}
	write_list('errors.txt', @text);
}

sub write_list {
	my ($name, @lines) = @_;

	open my $out, '>', "$report/$name" or die "$report/$name: $!\n";
	print $out map { "$_\n" } @lines;
	close $out or die "$report/$name: $!\n";
}
