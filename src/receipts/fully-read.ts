/**
 * Where the `m.fully_read` markers are kept, as account data of rooms; declared here, supplied at composition.
 * Source: client-server API, "Fully read markers".
 */
export interface FullyReadMarkers {
  /** The event at which the user's marker is, if they have one. */
  find(userId: string, roomId: string): Promise<string | undefined>;
  set(userId: string, roomId: string, eventId: string): Promise<void>;
}
