import { duplicateAnnotation, relationOf } from '../protocol/index.ts';
import type { EventToSend } from '../room-engine/index.ts';

/**
 * Annotations that are being sent: who sends the same at the same time can not find them yet.
 * Source: client-server API, "Avoiding duplicate annotations".
 */
export class PendingAnnotations {
  readonly #names = new Set<string>();

  /**
   * @param send sends the event; calls `claim` before it looks for one like it that was sent earlier
   * @throws MatrixError M_DUPLICATE_ANNOTATION from `claim`, when the same is under way
   */
  guard<T>(roomId: string, draft: EventToSend, send: (claim: () => void) => Promise<T>): Promise<T> {
    const name = nameOf(roomId, draft);
    return name === undefined ? send(() => undefined) : this.#guarded(name, send);
  }

  async #guarded<T>(name: string, send: (claim: () => void) => Promise<T>): Promise<T> {
    let isOurs = false;
    const claim = () => {
      if (this.#names.has(name)) throw duplicateAnnotation();
      this.#names.add(name);
      isOurs = true;
    };
    try {
      return await send(claim);
    } finally {
      if (isOurs) this.#names.delete(name);
    }
  }
}

/** What may be there once only; `undefined` for what is no annotation. */
function nameOf(roomId: string, { type, sender, content }: EventToSend): string | undefined {
  const relation = relationOf(content);
  if (relation?.relType !== 'm.annotation' || relation.key === undefined) return undefined;
  return JSON.stringify([roomId, type, sender, relation.eventId, relation.key]);
}
