import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import type { ContentSecurityPolicy } from '../../kernel/pages/index.ts';
import { type JsonObject, type JsonValue, MatrixError } from '../../protocol/index.ts';

/** A stage of interactive authentication, for instance the password. */
export interface Stage {
  /** For instance `m.login.dummy`. */
  readonly type: string;
  /** Parameters that a client needs for the stage. */
  params?(): JsonObject;
  /**
   * Checks the client's `auth` object.
   * @returns a result to store, for instance the registration token that was used
   * @throws MatrixError when the stage fails
   */
  verify(auth: JsonObject, context: StageContext): Promise<JsonValue> | JsonValue;
  /**
   * Stores rows of a completed stage besides its result, for instance the reservation of a registration token. Runs in
   * the transaction that stores the result in the session.
   * @param idHash hash of the id of the session
   * @throws MatrixError when the stage fails after all
   */
  store?(writer: AnyWriter, idHash: string, result: JsonValue): Promise<void>;
  /**
   * The form for clients that do not know the stage, and for the pages of this server. Absent when browsers cannot
   * complete the stage.
   */
  readonly form?: StageForm;
}

/** Stages of interactive authentication, by type. */
export type Stages = ReadonlyMap<string, Stage>;

/** The value of `InteractiveAuthRequest.operation` for registrations. */
export const registrationOperation = 'POST /register';

/** The form for completing a stage in a browser. Source: client-server API, "Fallback". */
export interface StageForm {
  /**
   * File name of a template. Its values are `myurl` (the form is sent to this URL), `session`, and the result of
   * `values` or `submit`. After a failure, `error` and the submitted `fields` are added.
   */
  readonly template: string;
  /** Directives of the Content-Security-Policy that the page needs. */
  readonly policy?: ContentSecurityPolicy;
  /** Returns the values for the first display of the page. */
  values?(context: StageContext): FormValues | Promise<FormValues>;
  /**
   * Turns submitted fields into the `auth` object of the stage, or into the values of a next page, for instance after a
   * mail was sent.
   * @throws MatrixError whose message is shown on the page
   */
  submit(fields: FormFields, context: StageContext): FormResult | Promise<FormResult>;
}

/** Values for the template of a form. */
export type FormValues = Readonly<Record<string, unknown>>;

/** The fields of a submitted form. */
export type FormFields = Readonly<Record<string, string>>;

/** The `auth` object for `Stage.verify`, or the values of a page to show next. */
export type FormResult = { readonly auth: JsonObject } | { readonly values: FormValues };

/** The session in which a stage is attempted. */
export interface StageContext {
  /** The logged-in user; `undefined` in a registration. */
  readonly requester: Pick<Requester, 'userId'> | undefined;
  readonly ip: string;
  /** The session id. */
  readonly session: string;
  readonly isRegistration: boolean;
}

/**
 * The error when a stage has authenticated another user than the requester. The request fails; the client is not
 * challenged again.
 */
export class ProofOfAnotherUser extends MatrixError {
  constructor() {
    super(403, 'M_FORBIDDEN', 'You have authenticated as another user');
  }
}

/** Lists of stages. A client has to complete all stages of one list. */
export type Flows = readonly (readonly string[])[];

/** A stage that always succeeds, for operations that use interactive authentication and need no proof. */
export const dummyStage: Stage = {
  type: 'm.login.dummy',
  verify: () => true,
  form: { template: 'auth_dummy.html', submit: () => ({ auth: {} }) },
};
