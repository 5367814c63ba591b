#!/usr/bin/perl
# A model of how transactions leave notes to each other (src/kit/note.h): three of them, two rows, all interleavings.
#
# Each transaction may hold a row from the start (what its statement was given), and wants to add itself to a row (maintenance). A row is
# right if it has exactly the transactions that want to be in it and have committed. Any transaction may be rolled back at any moment.
# The third one may take back what the first one has committed: it holds that one's source. It then wants the row as well (totals), or only
# if the row has the first one in it (copies), and processing a note of copies locks the source.
#
#   note_model.pl            checks the protocol; exit status 0 if it holds
#   note_model.pl VARIANT    the same with something left out: waits (no notes), always (a note whether or not the row's holder waits),
#                            blind (the notes of others are not looked for), reads (sources of copies are not locked)
use strict;
use warnings;

my $variant = shift // '';
my @kinds = ([0, 1], [1, 0], [-1, 0], [-1, 1], [0, -1], [1, -1]);    # [row that is held, row that is wanted]
my ($states, $stale, $stuck, $left) = (0, 0, 0, 0);
my (%seen, @tx);
my $copies;    # whether what is in order is left alone

# pc: 0 begins, 1 maintenance, 2 looks for notes, 3 processes them (todo), 4 commits, 5 committed, 6 rolled back
sub copy { my $s = shift; return { map { my $v = $s->{$_}; $_ => ref $v ? [map { ref $_ ? [@$_] : $_ } @$v] : $v } keys %$s } }

sub key { my $s = shift; return join ';', map { my $v = $s->{$_}; "$_=" . join ',', map { ref $_ ? '[' . join('.', @$_) . ']' : $_ } @$v } sort keys %$s }

# Whether the transaction takes back what the first one did; and whether it is under way, so that it holds the source.
sub undoes { my $i = shift; return $i == 2 && $tx[2][2] }
sub undoing { my $s = shift; return undoes(2) && $s->{pc}[2] >= 1 && $s->{pc}[2] <= 4 }

# The transaction that holds a row, or with 2 the source.
sub holder { my ($s, $what) = @_; return $what < 2 ? $s->{holder}[$what] : undoing($s) ? 2 : -1 }

# Whether the holder waits for the transaction, perhaps by way of others.
sub cycle {
  my ($s, $i, $what) = @_;
  my $j = holder($s, $what);
  for (1 .. 3) {
    return 0 if $s->{wait}[$j] < 0;
    $j = holder($s, $s->{wait}[$j]);
    return 1 if $j == $i;
    return 0 if $j < 0;
  }
  return 0;
}

# Takes the row, or a share of the source, for the transaction; 'free', 'cycle', or 'held'.
sub take {
  my ($s, $i, $row) = @_;
  my $h = holder($s, $row);
  return 'cycle' if $h >= 0 && $h != $i && $variant ne 'waits' && ($variant eq 'always' || cycle($s, $i, $row));
  return 'held' if $h >= 0 && $h != $i;
  if ($row < 2) { $s->{holder}[$row] = $i }
  else { $s->{reads}[$i] = 1 }
  return 'free';
}

# The row as the transaction computes it again: all that have committed, and itself.
sub compute {
  my ($s, $i, $row) = @_;
  my $set = 0;
  for my $j (0 .. 2) { $set |= 1 << $j if $tx[$j][1] == $row && !undoes($j) && ($s->{pc}[$j] == 5 || $j == $i) }
  $set &= ~1 if undoes($i) || undoes(2) && $s->{pc}[2] == 5;
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
  ($s->{pc}[$i], $s->{wait}[$i], $s->{todo}[$i], $s->{reads}[$i]) = ($committed ? 5 : 6, -1, [], 0);
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
    return if undoes($i) && ($n->{pc}[0] != 5 || grep { $_ } @{$n->{reads}});
    $n->{holder}[$row] = $i if $row >= 0;
    $n->{pc}[$i] = 1;
  }
  elsif ($pc == 1) {
    my $row = $tx[$i][1];
    $row = -1 if undoes($i) && $copies && !($n->{value}[$row] & 1);
    my $got = $row < 0 ? 'none' : take($n, $i, $row);
    if ($got eq 'held') {
      return @next if $w == $row;
      $n->{wait}[$i] = $row;
      return (@next, $n);
    }
    $n->{again}[$i] = 1 if $w >= 0 && $got ne 'cycle';
    $n->{wait}[$i] = -1;
    if ($got eq 'cycle') { push @{$n->{notes}}, [$row, $i, -1] }
    elsif ($row >= 0) {
      my $base = $n->{written}[$i][$row] >= 0 ? $n->{written}[$i][$row] : $n->{value}[$row];
      $n->{written}[$i][$row] = undoes($i) ? $base & ~1 : $base | 1 << $i;
    }
    $n->{pc}[$i] = 2;
  }
  elsif ($pc == 2) {
    # of tables to which it has written
    my %rows = map { $_->[0] => 1 }
      grep { ($_->[1] == $i || $_->[1] < 0 && $variant ne 'blind' && ($tx[$i][0] == $_->[0] || $tx[$i][1] == $_->[0])) && $_->[2] != $i } @{$n->{notes}};
    $n->{todo}[$i] = [sort keys %rows];
    $n->{again}[$i] = 0;
    $n->{pc}[$i] = 3;
  }
  elsif ($pc == 3) {
    if (!@{$n->{todo}[$i]}) { $n->{pc}[$i] = $n->{again}[$i] ? 2 : 4 }
    else {
      my $row = $n->{todo}[$i][0];
      # it waits for its own ones, and for those that were left to it: it has the row, or the source
      my $own = grep { $_->[0] == $row && $_->[1] == $i } @{$n->{notes}};
      my $ours = $own || $n->{holder}[$row] == $i || undoes($i);
      my $got = 'free';
      for my $what ($copies && $variant ne 'reads' && undoes(2) && $i != 2 && $row == $tx[0][1] ? 2 : (), $row) {
        $got = take($n, $i, $what);
        if ($got eq 'held' && $ours) {
          return @next if $w == $what;
          $n->{wait}[$i] = $what;
          return (@next, $n);
        }
        last if $got ne 'free';
      }
      $n->{again}[$i] = 1 if $w >= 0 && $got ne 'cycle';
      $n->{wait}[$i] = -1;
      shift @{$n->{todo}[$i]};
      if ($got eq 'free') {
        $n->{again}[$i] = 1;
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
    for my $j (0 .. 2) { $right |= 1 << $j if $tx[$j][1] == $row && !undoes($j) && $s->{pc}[$j] == 5 }
    $right &= ~1 if undoes(2) && $s->{pc}[2] == 5;
    next if $s->{value}[$row] == $right;
    if ($aborted && grep { $_->[0] == $row } @{$s->{notes}}) { $left++ }
    else { $stale++ }
  }
}

# All states of three transactions.
sub explore {
  @tx = @_;
  %seen = ();
  my @open = ({ pc => [0, 0, 0], holder => [-1, -1], wait => [-1, -1, -1], value => [0, 0], notes => [], again => [0, 0, 0], reads => [0, 0, 0],
      todo => [[], [], []], written => [[-1, -1], [-1, -1], [-1, -1]] });
  while (my $s = pop @open) {
    next if $seen{ key($s) }++;
    $states++;
    my $moves = 0;
    for my $i (0 .. 2) {
      for my $n (steps($s, $i)) { $moves++ if $n->{pc}[$i] != 6; push @open, $n }
    }
    next if $moves;
    # what the third one takes back may never come
    if (grep { $_ < 5 && !(undoes(2) && $s->{pc}[0] == 6) } @{$s->{pc}}) { $stuck++ }
    else { judge($s) }
  }
}

for my $a (0 .. $#kinds) {
  for my $b ($a .. $#kinds) {
    explore(@kinds[$a, $b, $_]) for $b .. $#kinds;
  }
}
for my $first (grep { $_->[1] >= 0 } @kinds) {
  for my $second (@kinds) {
    for (0, 1) { $copies = $_; explore($first, $second, [-1, $first->[1], 1]) }
  }
}
print "$states states: $stuck deadlocks, $stale ends with a row that is wrong and has no note, $left with a note of one because another transaction was rolled back\n";
exit($stuck + $stale > 0);
