import type { JsonObject } from '../../protocol/index.ts';

/** The error with which a request is rejected. */
export interface Denial {
  /** For instance `M_FORBIDDEN`, or a code with a namespace of your own: `ORG_EXAMPLE_SPAM`. */
  readonly errcode: string;
  /** The text that clients show to their user. */
  readonly error: string;
  /** Status of the response, 400 to 499; 403 when absent. */
  readonly status?: number;
  /** Further fields of the response body. */
  readonly extra?: JsonObject;
}

/**
 * The answer of a check. Every other value counts as a failure of the check. When a check fails (it throws, returns a
 * rejected promise, returns another value, or does not answer in time), the request is rejected with status 500, except
 * where the description of the check says otherwise.
 */
export type Decision = 'allow' | Denial;
