import { MatrixError } from '../errors.ts';
import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { relationOf } from './relation.ts';

/** What makes two annotations of one user the same. */
export interface AnnotationIdentity {
  readonly sender: string;
  readonly type: string;
  /** The event that is annotated. */
  readonly eventId: string;
  readonly key: string;
}

/**
 * The identity of an annotation, undefined for other events. A user must not send a second one that is the same,
 * unless the first has been redacted.
 * Source: client-server API, "Avoiding duplicate annotations".
 */
export function annotationOf(
  event: Pick<RoomEvent, 'sender' | 'type' | 'content'>,
): AnnotationIdentity | undefined {
  const relation = relationOf(event.content);
  if (relation?.relType !== 'm.annotation' || relation.key === undefined) return undefined;
  return { sender: event.sender, type: event.type, eventId: relation.eventId, key: relation.key };
}

/** The answer to a client that sends the same annotation again. */
export const duplicateAnnotation = () =>
  new MatrixError(400, 'M_DUPLICATE_ANNOTATION', 'You have annotated this event with that already');

/**
 * Whether an event with this content can be annotated: annotations and replacements can not.
 * Source: client-server API, "Event annotations and reactions", client behaviour.
 */
export function canBeAnnotated(target: JsonObject): boolean {
  const relType = relationOf(target)?.relType;
  return relType !== 'm.annotation' && relType !== 'm.replace';
}
