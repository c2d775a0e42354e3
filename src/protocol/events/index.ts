export {
  type BuiltEvent,
  buildEvent,
  type EventDraft,
  type EventSigner,
  prepareEvent,
  signEvent,
  type UnsignedEvent,
} from './build.ts';
export { type ClientEvent, clientEvent, clientEventWithoutRoomId } from './client-format.ts';
export { dummyEventType, isDummyEvent } from './dummy-event.ts';
export type { ReferenceLimits } from './format.ts';
export { referenceHash } from './hashes.ts';
export { checkIntegrity, type Integrity, redactEvent } from './integrity.ts';
export { MAX_AUTH_EVENTS, MAX_EVENT_BYTES, MAX_PREV_EVENTS, tooLongField } from './limits.ts';
export { claimedEventId, type ReceivedEvent, receivePdu } from './parse.ts';
export {
  isSignedByPolicyServer,
  needsPolicyServerSignature,
  type PolicyServer,
  parsePolicyServer,
  policyEventType,
  policyKeyId,
  withPolicySignature,
} from './policy-server.ts';
export { redactPdu } from './redaction.ts';
export { roomEventOf } from './room-event.ts';
export { parseStrippedState, type StrippedState, strippedState } from './stripped-state.ts';
