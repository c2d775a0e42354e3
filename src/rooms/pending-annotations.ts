import { duplicateAnnotation, relationOf } from '../protocol/index.ts';
import type { EventToSend } from '../room-engine/index.ts';

/**
 * Annotations that are being sent. The check for duplicates in the database cannot find them before they are stored.
 * Source: client-server API, "Avoiding duplicate annotations".
 */
export class PendingAnnotations {
  readonly #keys = new Set<string>();

  /**
   * Claims the annotation until `release`. Must be called before the database is checked for a duplicate.
   * @returns the claim; `undefined` for an event that is not an annotation
   * @throws MatrixError M_DUPLICATE_ANNOTATION when the same annotation is being sent
   */
  claim(roomId: string, draft: EventToSend): string | undefined {
    const key = annotationKey(roomId, draft);
    if (key === undefined) return undefined;
    if (this.#keys.has(key)) throw duplicateAnnotation();
    this.#keys.add(key);
    return key;
  }

  /** Ends a claim: the annotation is stored, or was refused. */
  release(claim: string | undefined): void {
    if (claim !== undefined) this.#keys.delete(claim);
  }
}

/** Returns a key of room, type, sender, annotated event and annotation key; `undefined` for other events. */
function annotationKey(roomId: string, { type, sender, content }: EventToSend): string | undefined {
  const relation = relationOf(content);
  if (relation?.relType !== 'm.annotation' || relation.key === undefined) return undefined;
  return JSON.stringify([roomId, type, sender, relation.eventId, relation.key]);
}
