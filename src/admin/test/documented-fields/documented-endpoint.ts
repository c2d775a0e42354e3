/**
 * The fields of an endpoint that the documentation of the reference server names, and where the documentation shows no
 * response, those that its code (version 1.160) sends.
 *
 * A list of fields is separated by spaces: `name?` may be absent, `name[]` is a list, `name{}` an object with any names,
 * and the fields of an object follow in parentheses: `rooms[](room_id name?) next_token?`.
 */
export interface DocumentedEndpoint {
  readonly query?: string;
  readonly body?: string;
  /** Empty: the response is an empty object. */
  readonly response: string;
  /** Fields that only this server has, such as `response rooms[].size`, and what each of them is. */
  readonly ours?: Readonly<Record<string, string>>;
  /** Fields that this server does not have, such as `body old_key`, and why. */
  readonly missing?: Readonly<Record<string, string>>;
}

/** Endpoints by method and path below `/_synapse/admin/`, such as `GET v2/users/{}`; `{}` stands for a path parameter. */
export type DocumentedEndpoints = Readonly<Record<string, DocumentedEndpoint>>;
