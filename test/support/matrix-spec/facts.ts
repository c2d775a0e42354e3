import { readFileSync } from 'node:fs';

/** The parts of the specification that have operations. */
export const apis = [
  'client-server',
  'server-server',
  'application-service',
  'push-gateway',
  'identity',
] as const;
export type Api = (typeof apis)[number];

/** JSON Schema; a `$ref` is the name of another schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas by media type; the schema is empty when the specification says nothing about the content. */
export type Content = Readonly<Record<string, Schema>>;

/** An operation as the data files of the specification describe it. */
export interface OperationFacts {
  /** Upper case. */
  readonly method: string;
  /** The template with its base, for instance `/_matrix/client/v3/rooms/{roomId}/send/{eventType}/{txnId}`. */
  readonly path: string;
  /** The name of the specification's file for one subject, for instance `account_deactivation`. */
  readonly group: string;
  readonly deprecated?: true;
  /** The security schemes. A request needs one of them; `none` allows a request without any. */
  readonly security?: readonly string[];
  /** For each place, the schema of an object whose fields are the parameters. */
  readonly parameters?: Readonly<Partial<Record<'path' | 'query' | 'header', Schema>>>;
  readonly bodyRequired?: true;
  readonly body?: Content;
  /** Content by status, for instance `200` or `4XX`; empty when the specification defines no body of the response. */
  readonly responses: Readonly<Record<string, Content>>;
}

/** The operations of an API by `operationId`. */
export function readOperations(api: Api): Readonly<Record<string, OperationFacts>> {
  return readFacts(api);
}

/** The schemas that others refer to, by name. */
export function readSchemas(): Readonly<Record<string, Schema>> {
  return readFacts('schemas');
}

function readFacts<Facts>(name: string): Facts {
  return JSON.parse(readFileSync(new URL(`facts/${name}.json`, import.meta.url), 'utf8')) as Facts;
}
