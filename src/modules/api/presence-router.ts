/** A change of a user's presence. */
export interface PresenceChange {
  readonly userId: string;
  readonly presence: 'online' | 'unavailable' | 'offline';
  readonly statusMessage: string | undefined;
}

/** Sends presence to further users than those who share a room. */
export interface PresenceRouter {
  /**
   * Returns the further users, local or remote, who receive each change, by the user id of the change. Failures route nothing.
   */
  receiversOf?(
    changes: readonly PresenceChange[],
  ): ReadonlyMap<string, readonly string[]> | Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * Returns the further users whose presence a local user may see. Should agree with `receiversOf`. A failure adds none. Of remote
   * users who share no room with a local user, the server knows the presence of at most 10,000 of each server, and not after a
   * restart until their server reports it again.
   */
  interestsOf?(userId: string): readonly string[] | 'all' | Promise<readonly string[] | 'all'>;
}
