/** A change of a user's presence. */
export interface PresenceChange {
  readonly userId: string;
  readonly presence: 'online' | 'unavailable' | 'offline';
  readonly statusMessage: string | undefined;
}

/** Sends the presence of users also to users who share no room with them. */
export interface PresenceRouter {
  /**
   * Returns, by the `userId` of a change, the ids of further users, local or remote, who receive the change. When it fails, only
   * users who share a room receive the changes.
   */
  receiversOf?(
    changes: readonly PresenceChange[],
  ): ReadonlyMap<string, readonly string[]> | Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * Returns the ids of further users whose presence a local user may see; `all` for all users. Should agree with `receiversOf`.
   * When it fails, the user sees only the presence of users who share a room. For each remote server, the server keeps the
   * presence of at most 10,000 users who share no room with a local user. A restart forgets their presence until the remote
   * server sends it again.
   */
  interestsOf?(userId: string): readonly string[] | 'all' | Promise<readonly string[] | 'all'>;
}
