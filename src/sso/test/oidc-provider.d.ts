/** Types for the parts of the package `oidc-provider` that the tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export type ClientMetadata = Readonly<Record<string, unknown>>;
  export interface Configuration {
    readonly interactions?: { url(context: unknown, interaction: { uid: string }): string };
    findAccount?(
      context: unknown,
      id: string,
    ): { accountId: string; claims(): Promise<Record<string, unknown>> };
    readonly [option: string]: unknown;
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration);
    readonly Grant: new (grant: {
      accountId: string;
      clientId: string;
    }) => { addOIDCScope(scope: string): void; save(): Promise<string> };
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(
      request: IncomingMessage,
      response: ServerResponse,
    ): Promise<{ readonly params: Readonly<Record<string, unknown>> }>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
