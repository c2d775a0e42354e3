/**
 * A writer whose tables are not named: what one slice hands another, so that both take part in one transaction
 * without knowing each other's tables. Every `Writer` is one.
 */
export interface AnyWriter {
  readonly isTransaction: true;
}
