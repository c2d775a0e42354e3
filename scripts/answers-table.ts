import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectedDifferences } from '../test/interop/answers/expected-differences.ts';

/** The page with the table, which is between `heading` and the next heading. */
const page = 'docs/interoperability.md';

/** Maximum number of requests that one row of the table names. */
const maxShown = 2;

const heading = '## Differences of answers\n';

/** Returns the path of the page, and its text with the table of expected differences. */
export function answersPage(root: string): readonly [path: string, content: string] {
  const written = readFileSync(join(root, page), 'utf8');
  const start = written.indexOf(heading);
  const end = written.indexOf('\n## ', start + heading.length);
  if (start < 0 || end < 0) throw new Error(`${page} lacks the heading "${heading.trim()}" or one after it`);
  return [page, `${written.slice(0, start)}${heading}\n${section()}${written.slice(end)}`];
}

/** Returns the text below the heading. */
function section(): string {
  const intro = `\`test/interop/answers.test.ts\` sends the same requests to both servers and compares status, errcode and every field of the answers. These differences are expected (\`test/interop/answers/expected-differences.ts\`, from which this table is generated); an expected difference that does not occur fails the test.`;
  const rows = expectedDifferences.map(({ what, reason, requests }) => {
    return [what, reason, shownRequests(requests)].map(escaped);
  });
  return [intro, '', ...table([['Hearth', 'reason', 'requests'], ...rows]), ''].join('\n');
}

/** Names the first `maxShown` requests, because further ones differ in the same way. `*` stands for many requests. */
function shownRequests(requests: readonly string[]): string {
  const shown = requests.slice(0, maxShown).map((request) => (request === '*' ? 'many' : `\`${request}\``));
  const more = requests.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Returns the lines of a table with aligned columns, as the formatter wants them. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const padded = rows.map((row) => line(row.map((text, column) => text.padEnd(widths[column]!))));
  return [padded[0]!, line(widths.map((width) => '-'.repeat(width))), ...padded.slice(1)];
}

const escaped = (text: string) => text.replaceAll('|', '\\|');
