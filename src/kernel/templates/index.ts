/** Renders texts and pages from templates in Jinja2's syntax. Operators may replace the templates file by file. */
export type { TemplateFilter } from './environment.ts';
export { pythonFormat } from './jinja/python-format.ts';
export { operatorFolder } from './operator-folder.ts';
export { type TemplateOptions, Templates } from './templates.ts';
export { compileText, type TextTemplate } from './text-template.ts';
