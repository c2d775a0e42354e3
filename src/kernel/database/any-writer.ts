/**
 * A writer without the types of its tables. A slice passes it to another slice, so that both write in one transaction
 * without knowing each other's tables. Every `Writer` is an AnyWriter.
 */
export interface AnyWriter {
  readonly isTransaction: true;
}
