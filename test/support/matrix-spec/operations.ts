import { type Api, apis, type OperationFacts, readOperations } from './facts.ts';

/** One operation of the specification's APIs. */
export interface Operation extends OperationFacts {
  readonly operationId: string;
  readonly api: Api;
}

/** Reads the operations of all APIs. */
export function listOperations(): Operation[] {
  return apis.flatMap((api) =>
    Object.entries(readOperations(api)).map(([operationId, facts]) => ({ operationId, api, ...facts })),
  );
}
