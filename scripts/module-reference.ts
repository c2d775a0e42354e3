import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The types that modules import as `hearth/module`. */
const folder = 'src/modules/api';

/** The files of the types in the order of the page. Files that are not listed follow alphabetically. */
const order = ['module', 'decision', 'spam-checker', 'event-rules', 'password-provider', 'web-resource'];

/** Returns the path and the text of the page about the API for modules, which shows its types without imports. */
export function moduleReference(root: string): readonly [path: string, content: string] {
  const found = globSync('*.ts', { cwd: join(root, folder) })
    .map((file) => file.replace(/\.ts$/, ''))
    .filter((name) => name !== 'index')
    .sort();
  const names = [...order, ...found.filter((name) => !order.includes(name))];
  const sections = names.map((name) => {
    const text = readFileSync(join(root, folder, `${name}.ts`), 'utf8');
    return `## ${titleOf(name)}\n\n\`\`\`ts\n${withoutImports(text)}\n\`\`\`\n`;
  });
  const intro = `# Reference of the API for modules\n\nGenerated from the types in \`${folder}\`, which modules import from \`hearth/module\`. [How to write a module](../modules.md).\n`;
  return ['docs/generated/modules.md', [intro, ...sections].join('\n')];
}

/** Returns for instance `Spam checker` for `spam-checker`. */
const titleOf = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`;

const withoutImports = (text: string) => text.replace(/^import [^;]*;\n/gm, '').trim();
