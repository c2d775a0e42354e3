/** A difference between the answers of both servers that is expected to stay. In patterns `*` stands for any text. */
export interface ExpectedDifference {
  /** Patterns of the requests: user, method and path with the note. */
  readonly requests: readonly string[];
  /** Patterns of the places where the answers differ. */
  readonly at: readonly string[];
  /** Pattern of what Hearth answers there, as JSON. */
  readonly hearth?: string;
  /** Pattern of what the reference server answers there, as JSON. */
  readonly reference?: string;
  /** Set when the difference depends on how long a server takes, so that it need not occur. */
  readonly dependsOnTime?: true;
  /** What differs, for readers: a cell of a table in docs/interoperability.md. */
  readonly what: string;
  /** Why the difference stays, for readers: a cell of the same table. */
  readonly reason: string;
}

/** Pattern of all requests. */
export const everywhere = ['*'];

/** Pattern of the error code of an answer. */
export const errcode = ['body.errcode'];
/** Pattern of the status of an answer. */
export const status = ['status'];
