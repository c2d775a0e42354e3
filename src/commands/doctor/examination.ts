import type { HearthConfiguration } from '../../configuration.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { OutboundHttp, Resolver, TlsSettings } from '../../kernel/outbound/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { Machine } from './machine.ts';

/** Inputs of every check. */
export interface Examination {
  readonly configuration: HearthConfiguration;
  /** Paths of the configuration, usually given with `-c`. */
  readonly paths: readonly string[];
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly resolver: Resolver;
  /** Sends requests to any address, private ones included. */
  readonly http: OutboundHttp;
  /** The certificate authorities that clients and other servers are assumed to trust. */
  readonly tls: TlsSettings;
  readonly machine: Machine;
  /** A file or directory that a tool other than `hearth backup` changes with each backup. */
  readonly backupMark: string | undefined;
}

/** Returns the flags that name the configuration, for the commands in findings. */
export const flagsOf = ({ paths }: Pick<Examination, 'paths'>): string =>
  paths.map((path) => ` -c ${path}`).join('');
