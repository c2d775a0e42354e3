import type { Findings } from '../problems.ts';
import type { AnySection } from '../section.ts';
import { type GivenOption, givenOptions } from '../sources/given.ts';
import type { SourceMap } from '../sources/source.ts';

/** A feature that is absent or incomplete because some of its options are not implemented. */
export interface Feature {
  /** The name of the feature; the warning begins with it. */
  readonly name: string;
  /** Paths of options, which stand for all options below them as well. */
  readonly options: readonly string[];
  /** The effect for the operator as a main clause, which follows "so". */
  readonly consequence: string;
  /**
   * Options that enable the feature. While each is absent, false, null or an empty list, no option of the feature is reported.
   * Absent: the options are always reported.
   */
  readonly switches?: readonly string[];
  /** True where the operator misses nothing: reported by a notice instead of a warning. */
  readonly isHarmless?: true;
}

/** Whether an option belongs to a feature. */
export function belongsTo({ options }: Feature, path: string): boolean {
  return options.some(
    (option) => path === option || (path.startsWith(option) && /^[.[]/.test(path.slice(option.length))),
  );
}

interface Configuration {
  readonly document: SourceMap;
  readonly sections: Readonly<Record<string, AnySection>>;
  readonly values: Readonly<Record<string, unknown>>;
  /** Paths of the options whose effect a test proves. */
  readonly proven: ReadonlySet<string>;
  readonly features: readonly Feature[];
}

/**
 * Reports the given options that no test proves, because this release ignores them. One warning or notice for each
 * feature names its options; every option without a feature has a warning of its own.
 */
export function reportIgnored(configuration: Configuration, findings: Findings): void {
  const { document, sections, proven, features } = configuration;
  const ignored = givenOptions(document, sections).filter(({ path }) => !proven.has(path));
  for (const feature of features) {
    const given = ignored.filter(({ path }) => belongsTo(feature, path));
    if (given.length > 0 && isWanted(configuration, feature)) report(feature, given, configuration, findings);
  }
  for (const { path, at } of ignored) {
    if (features.some((feature) => belongsTo(feature, path))) continue;
    findings.warn(path, 'is not in force yet: this release ignores it', at);
  }
}

function report(
  feature: Feature,
  given: readonly GivenOption[],
  { proven }: Configuration,
  findings: Findings,
): void {
  const at = given[0]?.at;
  // A later release may have put a part of the feature in force: then the described consequence is too broad.
  const isPartial = [...proven].some((option) => belongsTo(feature, option));
  const names = given.map((option) => option.path).join(', ');
  const text = isPartial
    ? `${feature.name}: not in force yet, this release ignores ${names}`
    : `${feature.name}: not in force yet, so ${feature.consequence} (ignored: ${names})`;
  if (feature.isHarmless) findings.notice('', text, at);
  else findings.warn('', text, at);
}

function isWanted({ values }: Configuration, { switches }: Feature): boolean {
  return switches === undefined || switches.some((path) => isOn(values, path));
}

function isOn(values: Configuration['values'], path: string): boolean {
  const steps = path.split('.');
  let value = Object.values(values).find((section) => steps[0]! in (section as object));
  for (const step of steps) value = (value as Record<string, unknown> | null | undefined)?.[step];
  return Array.isArray(value) ? value.length > 0 : value !== false && value !== null && value !== undefined;
}
