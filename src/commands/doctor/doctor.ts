import { loadConfigurationFiles } from '../../configuration/load.ts';
import { CacheRegistry } from '../../kernel/caches/index.ts';
import { systemClock } from '../../kernel/clock.ts';
import { OutboundHttp, systemResolver, TlsSettings } from '../../kernel/outbound/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { type ConfigFlags, configPaths } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { checkConfigurationFiles } from './checks/configuration.ts';
import type { Examination } from './examination.ts';
import { examine, type Section } from './examine.ts';
import { thisMachine } from './machine.ts';
import { countsOf, jsonReport, textReport } from './report.ts';

export interface DoctorFlags extends ConfigFlags {
  readonly json?: boolean;
  /** Makes warnings set the exit code 1, as errors do. */
  readonly strict?: boolean;
  readonly backupMark?: string;
}

/** Inputs of the checks from outside the program; tests replace them. */
export type ExternalInputs = Pick<Examination, 'clock' | 'randomness' | 'resolver' | 'machine'> & {
  /** PEM certificates of trusted authorities. When absent, the trusted authorities of the machine are used. */
  readonly authorities?: readonly string[];
};

const systemInputs: ExternalInputs = {
  clock: systemClock,
  randomness: systemRandomness,
  resolver: systemResolver,
  machine: thisMachine,
};

/**
 * `hearth doctor`: reports problems that an operator can mend, whether the server runs or not, and changes nothing.
 * Sets the exit code 1 when there are errors, with `strict` also when there are warnings.
 */
export async function doctor(flags: DoctorFlags): Promise<void> {
  const paths = configPaths(flags);
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const sections = await diagnose(paths, flags, systemInputs);
  const isColoured = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  process.stdout.write(flags.json ? jsonReport(sections) : textReport(sections, isColoured));
  const { errors, warnings } = countsOf(sections);
  if (errors > 0 || (flags.strict && warnings > 0)) process.exitCode = 1;
}

/** Runs all checks. When the configuration is not valid, reports only the problems of the configuration. */
export async function diagnose(
  paths: readonly string[],
  { backupMark }: { readonly backupMark?: string | undefined },
  { authorities, ...outside }: ExternalInputs,
): Promise<readonly Section[]> {
  const loaded = loadConfigurationFiles(paths, { environment: process.env });
  const configuration = { title: 'Configuration', findings: checkConfigurationFiles(paths, loaded) };
  if (loaded.errors.length > 0) return [configuration];
  const caches = new CacheRegistry(outside.clock, loaded.values.caches);
  const tls = new TlsSettings({ verify: true, ...(authorities && { authorities }) });
  // The checks send requests to servers that the configuration names: all addresses are allowed, private ones included.
  const config = { ...loaded.values.outbound, ip_range_blacklist: [] };
  const http = new OutboundHttp({ config, clock: outside.clock, caches, resolver: outside.resolver, tls });
  try {
    const examination = { ...outside, paths, configuration: loaded.values, http, tls, backupMark };
    return [configuration, ...(await examine(examination))];
  } finally {
    await http.close();
    caches.close();
  }
}
