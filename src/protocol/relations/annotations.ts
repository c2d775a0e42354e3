import { MatrixError } from '../errors.ts';

/**
 * The error for sending the same annotation again: same sender, type, event and key as an annotation that has
 * not been redacted.
 * Source: client-server API, "Avoiding duplicate annotations".
 */
export const duplicateAnnotation = () =>
  new MatrixError(400, 'M_DUPLICATE_ANNOTATION', 'You have already annotated this event with this key');
