/** What the operator allows of names and listings; declared here, supplied at composition. */
export interface DirectoryRules {
  /** @param roomId absent for a room that is about to be made */
  mayCreateAlias(userId: string, alias: string, roomId: string | undefined): boolean | Promise<boolean>;
  /** @param aliases those that the room has on this server */
  mayPublish(userId: string, roomId: string, aliases: readonly string[]): boolean | Promise<boolean>;
}

/** Everybody may do everything. */
export const noDirectoryRules: DirectoryRules = { mayCreateAlias: () => true, mayPublish: () => true };
