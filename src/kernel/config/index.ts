export { type Alias, renameAliases } from './aliases.ts';
export { formatDuration, parseDuration } from './duration.ts';
export { IpRangeSet } from './ip-range.ts';
export {
  type ConfigurationSource,
  type ConfigurationValues,
  type DocumentTransform,
  type Loaded,
  loadConfiguration,
  type Sections,
  type Surroundings,
} from './load.ts';
export { option } from './option.ts';
export {
  compileGlob,
  compileGlobOrRegularExpression,
  compileRegularExpression,
  type Matcher,
} from './patterns.ts';
export { Findings, formatProblem, type Position, type Problem } from './problems.ts';
export { diffReload, type Reload } from './reload.ts';
export type { Rule, RuleView } from './rules.ts';
export {
  type AnySection,
  type Overrides,
  type Section,
  type SectionType,
  section,
  sectionDefaults,
} from './section.ts';
export { effectiveDocument } from './show.ts';
export { formatSize, parseSize } from './size.ts';
export { mapNode, nodeFromValue, type SourceMap, type SourceNode, scalarNode } from './source.ts';
export { readSourceFiles, type SourceFiles } from './source-files.ts';
export * from './types.ts';
