import type { PresenceStatus } from './presence-status.ts';

/** Sends presence to further users than those who share a room; supplied by modules. Bounds its own time. */
export interface PresenceRouting {
  /** Returns the further users who receive changes: for each of them, the users whose presence it is. */
  receiversOf(changes: ReadonlyMap<string, PresenceStatus>): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Returns the further users whose presence a local user may see. */
  interestsOf(userId: string): Promise<ReadonlySet<string> | 'all'>;
}
