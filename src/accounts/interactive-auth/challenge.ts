import { MatrixError } from '../../protocol/index.ts';

/** The fields of the 401 response, which tell the client how to continue. */
export interface ChallengeBody {
  readonly flows: readonly { readonly stages: readonly string[] }[];
  /** Parameters that the client needs for stages, by type of stage. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The session id. */
  readonly session: string;
  /** Types of the completed stages. */
  readonly completed: readonly string[];
}

/**
 * The 401 response that lists the flows and the completed stages. Its JSON (`toJSON`) has an errcode only when a stage
 * has just failed, because clients treat an errcode as a failure.
 * Source: client-server API, "User-Interactive API in the REST API".
 */
export class Challenge extends MatrixError {
  readonly body: ChallengeBody;
  readonly #failure: MatrixError | undefined;

  constructor(body: ChallengeBody, failure?: MatrixError) {
    super(
      401,
      failure?.errcode ?? 'M_FORBIDDEN',
      failure?.message ?? 'More authentication stages are needed',
    );
    this.body = body;
    this.#failure = failure;
  }

  /** Whether a stage has just failed. False when stages are merely not completed yet. */
  get isFailure(): boolean {
    return this.#failure !== undefined;
  }

  override toJSON(): Record<string, unknown> {
    return { ...this.#failure?.toJSON(), ...this.body };
  }
}
