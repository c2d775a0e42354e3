/**
 * The types of events that servers send only to merge forward extremities, in both spellings. They carry no
 * message.
 */
const types: ReadonlySet<string> = new Set(['org.proto.dummy_event', 'org.matrix.dummy_event']);

/** The type that this server sends. */
export const dummyEventType = 'org.proto.dummy_event';

/** Whether an event only merges forward extremities. */
export const isDummyEvent = ({
  type,
  stateKey,
}: {
  readonly type: string;
  readonly stateKey?: string | undefined;
}) => stateKey === undefined && types.has(type);
