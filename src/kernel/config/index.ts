export { option } from './option.ts';
export { effectiveDocument } from './pages/show.ts';
export { Findings, formatProblem, type Position, type Problem } from './problems.ts';
export type { Feature } from './reading/ignored-features.ts';
export {
  type ConfigurationValues,
  type Loaded,
  type LoadOptions,
  loadConfiguration,
  type OptionPlaces,
  type Sections,
} from './reading/load.ts';
export { isPythonClass } from './reading/python-class.ts';
export { diffReload, type Reload, reloadedOrigins } from './reload.ts';
export type { Rule, RuleView } from './rules.ts';
export { type AnySection, type Section, type SectionType, section } from './section.ts';
export { type Alias, renameAliases } from './sources/aliases.ts';
export { fileProblem, writePrivateFile } from './sources/private-files.ts';
export {
  type DocumentTransform,
  mapNode,
  nodeFromValue,
  type SourceMap,
  type SourceNode,
  scalarNode,
} from './sources/source.ts';
export { type ConfigurationSource, readSourceFiles, type SourceFiles } from './sources/source-files.ts';
export { parseYaml } from './sources/yaml-source.ts';
export * from './types.ts';
export { formatDuration, parseDuration } from './values/duration.ts';
export { formatIpRange, IpRangeSet, parseIpRange } from './values/ip-range.ts';
