#!/usr/bin/perl
# A model of how transactions leave notes to each other (src/patterns/note.h): three of them, two rows, all interleavings.
#
# Each transaction may hold a row from the start (what its statement was given), and wants to add itself to a row (maintenance). A row is
# right if it has exactly the transactions that want to be in it and have committed. Any transaction may be rolled back at any moment.
#
#   note_model.pl            checks the protocol; exit status 0 if it holds
#   note_model.pl VARIANT    the same with something left out: waits (no notes), always (a note whether or not the row's holder waits),
#                            blind (the notes of others are not looked for)
use strict;
use warnings;

my $variant = shift // '';
my @kinds = ([0, 1], [1, 0], [-1, 0], [-1, 1], [0, -1], [1, -1]);    # [row that is held, row that is wanted]
my ($states, $stale, $stuck, $left) = (0, 0, 0, 0);
my (%seen, @tx);

# pc: 0 begins, 1 maintenance, 2 looks for notes, 3 settles them (todo), 4 commits, 5 committed, 6 rolled back
sub copy { my $s = shift; return { map { my $v = $s->{$_}; $_ => ref $v ? [map { ref $_ ? [@$_] : $_ } @$v] : $v } keys %$s } }

sub key { my $s = shift; return join ';', map { my $v = $s->{$_}; "$_=" . join ',', map { ref $_ ? '[' . join('.', @$_) . ']' : $_ } @$v } sort keys %$s }

# Whether the holder of the row waits for the transaction, perhaps by way of others.
sub circle {
  my ($s, $i, $row) = @_;
  my $j = $s->{holder}[$row];
  for (1 .. 3) {
    return 0 if $s->{wait}[$j] < 0;
    $j = $s->{holder}[$s->{wait}[$j]];
    return 1 if $j == $i;
    return 0 if $j < 0;
  }
  return 0;
}

# Takes the row for the transaction; 'free', 'circle', or 'held'.
sub take {
  my ($s, $i, $row) = @_;
  my $h = $s->{holder}[$row];
  return 'circle' if $h >= 0 && $h != $i && $variant ne 'waits' && ($variant eq 'always' || circle($s, $i, $row));
  return 'held' if $h >= 0 && $h != $i;
  $s->{holder}[$row] = $i;
  return 'free';
}

# The row as the transaction computes it again: all that have committed, and itself.
sub compute {
  my ($s, $i, $row) = @_;
  my $set = 0;
  for my $j (0 .. 2) { $set |= 1 << $j if $tx[$j][1] == $row && ($s->{pc}[$j] == 5 || $j == $i) }
  $s->{written}[$i][$row] = $set;
}

sub finish {
  my ($s, $i, $committed) = @_;
  for my $row (0, 1) {
    $s->{value}[$row] = $s->{written}[$i][$row] if $committed && $s->{written}[$i][$row] >= 0;
    $s->{holder}[$row] = -1 if $s->{holder}[$row] == $i;
  }
  # a note is [row, its transaction (-1: committed), the transaction that deletes it (-1: none)]
  my @notes;
  for my $n (@{$s->{notes}}) {
    my ($row, $by, $gone) = @$n;
    next if $by == $i && !$committed || $gone == $i && $committed;
    push @notes, [$row, $by == $i ? -1 : $by, $gone == $i ? -1 : $gone];
  }
  $s->{notes} = [sort { "@$a" cmp "@$b" } @notes];
  ($s->{pc}[$i], $s->{wait}[$i], $s->{todo}[$i]) = ($committed ? 5 : 6, -1, []);
}

# All states that one step of the transaction leads to.
sub steps {
  my ($s, $i) = @_;
  my $pc = $s->{pc}[$i];
  my @next;
  return if $pc >= 5;
  if ($pc > 0) { my $n = copy($s); finish($n, $i, 0); push @next, $n }    # rolled back, also while it waits
  my $n = copy($s);
  my $w = $n->{wait}[$i];
  if ($pc == 0) {
    my $row = $tx[$i][0];
    return if $row >= 0 && $n->{holder}[$row] >= 0;
    $n->{holder}[$row] = $i if $row >= 0;
    $n->{pc}[$i] = 1;
  }
  elsif ($pc == 1) {
    my $row = $tx[$i][1];
    my $got = $row < 0 ? 'none' : take($n, $i, $row);
    if ($got eq 'held') {
      return @next if $w == $row;
      $n->{wait}[$i] = $row;
      return (@next, $n);
    }
    $n->{again}[$i] = 1 if $w >= 0 && $got ne 'circle';
    $n->{wait}[$i] = -1;
    if ($got eq 'circle') { push @{$n->{notes}}, [$row, $i, -1] }
    elsif ($row >= 0) {
      my $base = $n->{written}[$i][$row] >= 0 ? $n->{written}[$i][$row] : $n->{value}[$row];
      $n->{written}[$i][$row] = $base | 1 << $i;
    }
    $n->{pc}[$i] = 2;
  }
  elsif ($pc == 2) {
    my %rows = map { $_->[0] => 1 } grep { ($_->[1] == $i || $_->[1] < 0 && $variant ne 'blind') && $_->[2] != $i } @{$n->{notes}};
    $n->{todo}[$i] = [sort keys %rows];
    $n->{again}[$i] = 0;
    $n->{pc}[$i] = 3;
  }
  elsif ($pc == 3) {
    if (!@{$n->{todo}[$i]}) { $n->{pc}[$i] = $n->{again}[$i] ? 2 : 4 }
    else {
      my $row = $n->{todo}[$i][0];
      my $own = grep { $_->[0] == $row && $_->[1] == $i } @{$n->{notes}};
      my $got = take($n, $i, $row);
      if ($got eq 'held' && $own) {
        return @next if $w == $row;
        $n->{wait}[$i] = $row;
        return (@next, $n);
      }
      $n->{again}[$i] = 1 if $w >= 0 && $got ne 'circle';
      $n->{wait}[$i] = -1;
      shift @{$n->{todo}[$i]};
      if ($got eq 'free') {
        compute($n, $i, $row);
        for my $note (@{$n->{notes}}) { $note->[2] = $i if $note->[0] == $row && $note->[2] < 0 && ($note->[1] == $i || $note->[1] < 0) }
      }
    }
  }
  else { finish($n, $i, 1) }
  return (@next, $n);
}

# When all have ended: every row is right, or a note of it is left because another was rolled back.
sub judge {
  my $s = shift;
  my $aborted = grep { $_ == 6 } @{$s->{pc}};
  for my $row (0, 1) {
    my $right = 0;
    for my $j (0 .. 2) { $right |= 1 << $j if $tx[$j][1] == $row && $s->{pc}[$j] == 5 }
    next if $s->{value}[$row] == $right;
    if ($aborted && grep { $_->[0] == $row } @{$s->{notes}}) { $left++ }
    else { $stale++ }
  }
}

for my $a (0 .. $#kinds) {
  for my $b ($a .. $#kinds) {
    for my $c ($b .. $#kinds) {
      @tx = @kinds[$a, $b, $c];
      %seen = ();
      my @open = ({ pc => [0, 0, 0], holder => [-1, -1], wait => [-1, -1, -1], value => [0, 0], notes => [], again => [0, 0, 0],
          todo => [[], [], []], written => [[-1, -1], [-1, -1], [-1, -1]] });
      while (my $s = pop @open) {
        next if $seen{ key($s) }++;
        $states++;
        my $moves = 0;
        for my $i (0 .. 2) {
          for my $n (steps($s, $i)) { $moves++ if $n->{pc}[$i] != 6; push @open, $n }
        }
        next if $moves;
        if (grep { $_ < 5 } @{$s->{pc}}) { $stuck++ }
        else { judge($s) }
      }
    }
  }
}
print "$states states: $stuck deadlocks, $stale ends with a row that is wrong and has no note, $left with a note of one because another transaction was rolled back\n";
exit($stuck + $stale > 0);
