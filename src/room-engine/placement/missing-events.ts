/** An event can not get its place yet: it names events that this server does not have, or has without their state. */
export class MissingEvents extends Error {
  override name = 'MissingEvents';
  readonly eventIds: readonly string[];

  constructor(eventIds: readonly string[]) {
    super(`${eventIds.length} events are missing, ${eventIds[0]} among them`);
    this.eventIds = eventIds;
  }
}
