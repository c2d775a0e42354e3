import type { OptionSchema } from '../option.ts';
import { type OptionWithPath, sectionPaths } from '../option-paths.ts';
import type { AnySection } from '../section.ts';
import { writtenDefault } from './json-schema.ts';
import { notesOf, typeWords } from './type-words.ts';

/** Returns the reference of all options in Markdown. */
export function referencePage(sections: Readonly<Record<string, AnySection>>, introduction: string): string {
  const parts = Object.values(sections).map(sectionReference);
  const contents = Object.values(sections).map(({ title }) => `- [${title}](#${anchor(title)})`);
  return `${[introduction, contents.join('\n'), ...parts].join('\n\n')}\n`;
}

/** Returns the reference of one option in Markdown: path, type, default and description. */
export function optionReference({ path, schema }: OptionWithPath, level = 3): string {
  const heading = `${'#'.repeat(level)} \`${path}\``;
  return [heading, typeAndDefault(schema), schema.description, ...notesOf(schema)].join('\n\n');
}

function sectionReference(section: AnySection): string {
  const options = sectionPaths(section).map((option) =>
    optionReference(option, option.path.match(/[.[]/) ? 4 : 3),
  );
  return [`## ${section.title}`, ...(section.description ? [section.description] : []), ...options].join(
    '\n\n',
  );
}

function typeAndDefault(schema: OptionSchema): string {
  return `Type: ${typeWords(schema)}  \nDefault: ${defaultWords(schema)}`;
}

function defaultWords(schema: OptionSchema): string {
  if (schema['x-required']) return 'none; the option is required';
  const written = writtenDefault(schema);
  const members = Object.keys(schema.properties ?? {});
  if (members.length > 0 && schema.default === undefined) return 'those of its options';
  return `\`${typeof written === 'string' && written !== '' ? written : JSON.stringify(written)}\``;
}

function anchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}
