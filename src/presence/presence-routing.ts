import type { PresenceStatus } from './presence-status.ts';

/** Selects further users who see the presence of a user, although they share no room. Modules supply it; its calls to modules have time limits. */
export interface PresenceRouting {
  /** Returns the further users who receive changes, each with the users whose changes they receive. */
  receiversOf(changes: ReadonlyMap<string, PresenceStatus>): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Returns the further users whose presence a local user may see. */
  interestsOf(userId: string): Promise<ReadonlySet<string> | 'all'>;
}
