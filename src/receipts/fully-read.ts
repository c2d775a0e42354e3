/**
 * Stores the `m.fully_read` markers as room account data; declared here, supplied at composition. Source:
 * client-server API, "Fully read markers".
 */
export interface FullyReadMarkers {
  /** Returns the event id of the user's marker; `undefined` when there is none. */
  find(userId: string, roomId: string): Promise<string | undefined>;
  set(userId: string, roomId: string, eventId: string): Promise<void>;
}
