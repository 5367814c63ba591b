#!/usr/bin/perl
# Draws docs/pictures/NAME.svg from NAME.txt: draw.pl NAME.txt...
# Box-drawing characters become lines, ▲▶▼◀ arrowheads, everything else text; words in double quotes
# are coloured. The first line that begins with "# " is the alternative text. The picture has its own
# background, so it can be read on light and dark pages.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

my ($w, $h, $margin) = (8.4, 18, 14);
# the arms of each character: up 1, right 2, down 4, left 8
my %arms = ('─' => 10, '│' => 5, '┌' => 6, '┐' => 12, '└' => 3, '┘' => 9,
	'├' => 7, '┤' => 13, '┬' => 14, '┴' => 11, '┼' => 15);
my %heads = ('▲' => [-4, 4, 8, 0, -4, -8], '▼' => [-4, -4, 8, 0, -4, 8],
	'▶' => [-4, -4, 0, 8, 8, -4], '◀' => [4, -4, 0, 8, -8, -4]);

for my $file (@ARGV) {
	open(my $in, '<', $file) or die "$file: $!\n";
	my @lines = map { chomp; $_ } <$in>;
	close $in;
	my $title = @lines && $lines[0] =~ /^# (.*)/ ? $1 : die "$file: no title\n";
	shift @lines;
	my ($columns, $path, $shapes) = (0, '', '');
	for my $row (0 .. $#lines) {
		my $line = $lines[$row];
		$columns = length $line if length $line > $columns;
		my $y = $margin + ($row + 0.5) * $h;
		for my $column (0 .. length($line) - 1) {
			my $c = substr($line, $column, 1);
			my $x = $margin + ($column + 0.5) * $w;
			if (my $arms = $arms{$c}) {
				$path .= sprintf('M%g %gv%g', $x, $y, -$h / 2) if $arms & 1;
				$path .= sprintf('M%g %gh%g', $x, $y, $w / 2) if $arms & 2;
				$path .= sprintf('M%g %gv%g', $x, $y, $h / 2) if $arms & 4;
				$path .= sprintf('M%g %gh%g', $x, $y, -$w / 2) if $arms & 8;
			} elsif (my $head = $heads{$c}) {
				$shapes .= sprintf(qq{<path class="a" d="M%g %gl%g %gl%g %gz"/>\n},
					$x + $head->[0], $y + $head->[1], @$head[2 .. 5]);
			}
		}
		my $boxes = join '', keys %arms, keys %heads;
		while ($line =~ /("[^"]*")|((?:[^ "$boxes]| (?=[^ "$boxes]))+)/g) {
			my ($text, $class) = defined $1 ? ($1, ' class="s"') : ($2, '');
			my $at = $margin + $-[0] * $w;
			my $length = length($text) * $w;
			$text =~ s/&/&amp;/g;
			$text =~ s/</&lt;/g;
			$shapes .= sprintf(qq{<text%s x="%g" y="%g" textLength="%g">%s</text>\n},
				$class, $at, $y + 5, $length, $text);
		}
	}
	my ($width, $height) = ($columns * $w + 2 * $margin, @lines * $h + 2 * $margin);
	(my $svg = $file) =~ s/\.txt$/.svg/;
	open(my $out, '>', $svg) or die "$svg: $!\n";
	print $out <<"SVG";
<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height" viewBox="0 0 $width $height">
<title>$title</title>
<style>
rect{fill:#f6f8fa;stroke:#d0d7de}text{font:14px monospace;fill:#1f2328;white-space:pre}
.l{fill:none;stroke:#6e7781}.a{fill:#6e7781}.s{fill:#0550ae}
\@media(prefers-color-scheme:dark){rect{fill:#161b22;stroke:#30363d}text{fill:#e6edf3}
.l{stroke:#8b949e}.a{fill:#8b949e}.s{fill:#79c0ff}}
</style>
<rect x="0.5" y="0.5" width="@{[$width - 1]}" height="@{[$height - 1]}" rx="6"/>
<path class="l" d="$path"/>
$shapes</svg>
SVG
	close $out;
}
