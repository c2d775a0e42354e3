/** What servers send to tie loose ends of a room's history together, in both spellings. It says nothing to anybody. */
const types: ReadonlySet<string> = new Set(['org.proto.dummy_event', 'org.matrix.dummy_event']);

/** Under this name this server sends it. */
export const dummyEventType = 'org.proto.dummy_event';

/** Whether an event is only there for the history of its room. */
export const isDummyEvent = ({
  type,
  stateKey,
}: {
  readonly type: string;
  readonly stateKey?: string | undefined;
}) => stateKey === undefined && types.has(type);
