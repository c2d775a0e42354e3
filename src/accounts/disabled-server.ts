import { MatrixError } from '../protocol/index.ts';

export interface DisabledServerOptions {
  readonly hs_disabled: boolean;
  readonly hs_disabled_message: string;
  readonly admin_contact: string | null;
}

/**
 * Returns a function that makes the error for users of a disabled server; `undefined` when the server is not
 * disabled (`hs_disabled`).
 */
export function disabledServerError(
  options: Partial<DisabledServerOptions>,
): (() => MatrixError) | undefined {
  const { hs_disabled: isDisabled, hs_disabled_message: message = '', admin_contact: contact } = options;
  if (!isDisabled) return undefined;
  const details = {
    limit_type: 'hs_disabled',
    ...(typeof contact === 'string' && { admin_contact: contact }),
  };
  return () => new MatrixError(403, 'M_RESOURCE_LIMIT_EXCEEDED', message, details);
}
