import type { PresenceStatus } from './presence-status.ts';

/**
 * Selects users who see the presence of another user although the two share no room. Modules make the selection, within
 * a time limit.
 */
export interface PresenceRouting {
  /** Returns the selected receivers of changes, each with the users whose changes the receiver gets. */
  receiversOf(changes: ReadonlyMap<string, PresenceStatus>): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Returns the users without a shared room whose presence a local user may see; `all` stands for every user. */
  interestsOf(userId: string): Promise<ReadonlySet<string> | 'all'>;
}
