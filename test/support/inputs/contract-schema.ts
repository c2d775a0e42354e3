/** A JSON Schema in the contract of a route; only the keywords that tests read. */
export interface ContractSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: unknown;
  readonly pattern?: string;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: ContractSchema | readonly ContractSchema[];
  readonly properties?: Readonly<Record<string, ContractSchema>>;
  readonly patternProperties?: Readonly<Record<string, ContractSchema>>;
  readonly additionalProperties?: ContractSchema | boolean;
  readonly anyOf?: readonly ContractSchema[];
  readonly allOf?: readonly ContractSchema[];
  readonly oneOf?: readonly ContractSchema[];
}
