import type { Section } from './examine.ts';
import type { Level } from './finding.ts';

const marks: Readonly<Record<Level, string>> = { ok: '✓', note: '·', warning: '!', error: '✗' };
const colours: Readonly<Record<Level, number>> = { ok: 32, note: 90, warning: 33, error: 31 };

/** Number of errors and warnings. */
export interface Counts {
  readonly errors: number;
  readonly warnings: number;
}

export function countsOf(sections: readonly Section[]): Counts {
  const levels = sections.flatMap(({ findings }) => findings.map(({ level }) => level));
  const count = (wanted: Level) => levels.filter((level) => level === wanted).length;
  return { errors: count('error'), warnings: count('warning') };
}

/** Returns the findings as text for a terminal, each with the command or the configuration that mends it. */
export function textReport(sections: readonly Section[], isColoured: boolean): string {
  const lines: string[] = [];
  for (const { title, findings } of sections) {
    if (findings.length === 0) continue;
    lines.push(title);
    for (const { level, message, fix } of findings) {
      const mark = isColoured ? `\u001b[${colours[level]}m${marks[level]}\u001b[0m` : marks[level];
      lines.push(`  ${mark} ${message}`);
      if (fix !== undefined) lines.push(`      → ${fix}`);
    }
  }
  const { errors, warnings } = countsOf(sections);
  lines.push('', errors + warnings === 0 ? 'Nothing needs to be mended.' : summary(errors, warnings), '');
  return lines.join('\n');
}

const summary = (errors: number, warnings: number) =>
  `${plural(errors, 'error')}, ${plural(warnings, 'warning')}. The lines with → say what mends them.`;

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** Returns the findings as JSON: `{"errors", "warnings", "findings": [{"section", "name", "level", "message", "fix"}]}`. */
export function jsonReport(sections: readonly Section[]): string {
  const findings = sections.flatMap(({ title, findings: list }) =>
    list.map((finding) => ({ section: title, ...finding })),
  );
  return `${JSON.stringify({ ...countsOf(sections), findings }, null, 2)}\n`;
}
