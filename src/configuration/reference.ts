import { sections } from '../configuration.ts';
import { allPaths } from '../kernel/config/option-paths.ts';
import { jsonSchema } from '../kernel/config/pages/json-schema.ts';
import { optionReference, referencePage } from '../kernel/config/pages/reference.ts';
import { suggestion } from '../kernel/config/reading/nearest-name.ts';
import { aliases } from './aliases.ts';

const introduction = `# Configuration reference

All options of Hearth's configuration. This page is generated (\`hearth config docs\`). How values are
written (durations, sizes, patterns) is described in [values](../configuration/values.md), how files are
found and merged in [files](../configuration/files.md), and which options are in force already in
[options](options.md).

In a path, \`[]\` stands for each entry of a list, and \`*\` for each name of a mapping whose names you choose.`;

/** The JSON Schema of Hearth's configuration. */
export function configurationSchema(): Record<string, unknown> {
  return jsonSchema(sections, 'Configuration of Hearth');
}

/** The reference of Hearth's configuration, in Markdown. */
export function configurationReference(): string {
  return referencePage(sections, introduction);
}

/** Explains an option and the options below it, or says that there is none at this path. */
export function explainOption(path: string): { readonly found: boolean; readonly text: string } {
  const wanted = path.replace(/\[[0-9]*\]/g, '[]');
  const alias = aliases.find(({ name, within }) => wanted === (within ? `${within}.${name}` : name));
  const canonical = alias ? [alias.within, alias.option].filter(Boolean).join('.') : wanted;
  const options = allPaths(sections);
  const option = options.find((candidate) => candidate.path === canonical);
  if (option === undefined) {
    const names = options.map((candidate) => candidate.path);
    return { found: false, text: `There is no option ${path}${suggestion(path, names)}\n` };
  }
  const below = options.filter(
    (candidate) =>
      /^[.[]/.test(candidate.path.slice(canonical.length)) && candidate.path.startsWith(canonical),
  );
  const renamed = alias ? [`\`${path}\` is another name for \`${canonical}\`.`] : [];
  const texts = [optionReference(option), ...below.map((inner) => optionReference(inner, 4))];
  return { found: true, text: `${[...renamed, ...texts].join('\n\n')}\n` };
}
