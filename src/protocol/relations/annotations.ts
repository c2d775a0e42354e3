import { MatrixError } from '../errors.ts';

/**
 * The answer to a client that sends the same annotation again: one of the same sender and type, of the same event, with
 * the same key, where the first has not been redacted.
 * Source: client-server API, "Avoiding duplicate annotations".
 */
export const duplicateAnnotation = () =>
  new MatrixError(400, 'M_DUPLICATE_ANNOTATION', 'You have annotated this event with that already');
