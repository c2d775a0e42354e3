/** An event cannot be placed yet: it refers to events that are not stored, or whose state is unknown. */
export class MissingEvents extends Error {
  override name = 'MissingEvents';
  readonly eventIds: readonly string[];

  constructor(eventIds: readonly string[]) {
    super(`${eventIds.length} events are missing or their state is unknown, for example ${eventIds[0]}`);
    this.eventIds = eventIds;
  }
}
