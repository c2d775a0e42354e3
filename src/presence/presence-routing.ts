import type { PresenceStatus } from './presence-status.ts';

/** Sends presence to users who share no room; supplied by modules. Its methods limit the time that they take. */
export interface PresenceRouting {
  /** Returns the further users who receive changes, each with the users whose presence they receive. */
  receiversOf(changes: ReadonlyMap<string, PresenceStatus>): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Returns the further users whose presence a local user may see. */
  interestsOf(userId: string): Promise<ReadonlySet<string> | 'all'>;
}
