/** A page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Number of rows of the whole list. */
  readonly total: number;
  /** Where the next page begins; `undefined` for the last page. */
  readonly next: number | undefined;
}

/** The page of a list to request, and its order. */
export interface PageRequest {
  /** Index of the first row. */
  readonly from: number;
  readonly limit: number;
  readonly order_by?: string | undefined;
  /** `f`: in the order of the server, `b`: reversed. */
  readonly dir?: 'f' | 'b' | undefined;
}

/** Reads the start of the next page. Some endpoints send it as a string. */
export const nextOf = (token: string | number | undefined): number | undefined =>
  token === undefined ? undefined : Number(token);
