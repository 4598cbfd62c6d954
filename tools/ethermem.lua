-- Wireshark's view of the memory node's datagrams: docs/internals/clio-wire.md.
--
-- Use: tshark -X lua_script:tools/ethermem.lua, or put it into Wireshark's folder of plugins. Other
-- ports than 7400: "Decode As", or -d udp.port==PORT,ethermem.
--
-- Frames of raw Ethernet (docs/internals/clio-transport.md) are read as well; a datagram that goes
-- in pieces is shown as pieces. Encrypted packets (protection 2) are shown as data. The tables are
-- those of golden/wire; a test holds every field here to them.

local ethermem = Proto("ethermem", "ethermem memory node")

local PORT = 7400
local ENVELOPE_BYTES, REQUEST_BYTES, RESPONSE_BYTES = 32, 24, 16
local ANSWER = 0x80
local PROTECTIONS = { [0] = "carrier", [1] = "CRC-32C", [2] = "AES-256-GCM" }
local TRAILER_BYTES = { [0] = 0, [1] = 4, [2] = 16 }

local STATUSES = {
    [0] = "Ok", "OwnerDied", "Corrupt", "UnknownOpcode", "Malformed", "WrongEpoch", "Expired",
    "NoSuchProcess", "Unmapped", "Permission", "Misaligned", "BadLength", "Busy", "Held",
    "NotHeld", "Full", "Quota", "AddressTaken", "AddressOverflows", "NoSuchOffload",
    "OffloadFailed",
}

-- A body is a list of fields: a name and its octets, or "rest", "rest_numbers" or "counted".
local OPERAND = { { "address", 8 }, { "operand", 8 } }
local WORD = { { "word_before", 8 } }
local OPCODES = {
    [1] = { "read", { { "address", 8 }, { "bytes", 4 } }, { { "data", "rest" } } },
    [2] = { "write", { { "address", 8 }, { "data", "rest" } }, {} },
    [8] = { "compare_and_swap",
            { { "address", 8 }, { "expected", 8 }, { "desired", 8 } }, WORD },
    [9] = { "fetch_and_add", OPERAND, WORD },
    [10] = { "swap", OPERAND, WORD },
    [11] = { "and", OPERAND, WORD },
    [12] = { "or", OPERAND, WORD },
    [13] = { "xor", OPERAND, WORD },
    [14] = { "test_and_set", { { "address", 8 } }, WORD },
    [16] = { "lock", { { "address", 8 }, { "holder", 4 } }, {} },
    [17] = { "unlock", { { "address", 8 }, { "holder", 4 } }, {} },
    [18] = { "fence", {}, {} },
    [32] = { "allocate", { { "bytes", 8 }, { "at", 8 }, { "permissions", 1 } },
             { { "address", 8 } } },
    [33] = { "free", { { "address", 8 } }, {} },
    [34] = { "share",
             { { "address", 8 }, { "at", 8 }, { "with_process", 4 }, { "permissions", 1 } },
             { { "address", 8 } } },
    [35] = { "create_process", {}, { { "created", 4 } } },
    [36] = { "end_process", {}, {} },
    [48] = { "offload", { { "name_bytes", 1 }, { "name", "counted" }, { "data", "rest" } },
             { { "data", "rest" } } },
    [64] = { "hello", {},
             { { "epoch", 4 }, { "page_bytes", 4 }, { "data_bytes_max", 4 },
               { "lifetime_us_max", 4 }, { "memory_bytes", 8 }, { "lease_ms", 8 } } },
    [65] = { "keep_alive", {}, {} },
    [66] = { "acknowledge", { { "requests", "rest_numbers" } }, {} },
    [67] = { "nack", {}, {} },
    [68] = { "probe", { { "padding", "rest" } }, { { "padding", "rest" } } },
}

local fields = {}
local function number(name, octets, values)
    local make = ({ ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32, nil, nil, nil,
                    ProtoField.uint64 })[octets]
    local as = (name == "address" or name == "at" or name == "sender") and base.HEX or base.DEC
    fields[name .. octets] = make("ethermem." .. name, name, as, values)
end

number("version", 1)
number("protection", 1, PROTECTIONS)
number("tenant", 2)
number("epoch", 4)
number("sender", 8)
number("sequence", 8)
number("clock_ns", 8)
number("attempt", 1)
number("packet_bytes", 2)
number("process", 4)
number("request", 8)
number("acknowledged", 8)
number("status", 1, STATUSES)
number("detail", 8)
fields.opcode = ProtoField.string("ethermem.opcode", "opcode")
fields.answer = ProtoField.bool("ethermem.answer", "answer")
fields.encrypted = ProtoField.bytes("ethermem.encrypted", "encrypted packets")
fields.check = ProtoField.bytes("ethermem.check", "check")
for _, row in pairs(OPCODES) do
    for _, body in ipairs({ row[2], row[3] }) do
        for _, field in ipairs(body) do
            local name, octets = field[1], field[2]
            if type(octets) == "number" then
                if not fields[name .. octets] then number(name, octets) end
            elseif not fields[name] then
                local make = octets == "counted" and ProtoField.string or ProtoField.bytes
                if octets == "rest_numbers" then
                    make = ProtoField.uint64
                end
                fields[name] = make("ethermem." .. name, name)
            end
        end
    end
end
do
    local all = {}
    for _, field in pairs(fields) do all[#all + 1] = field end
    ethermem.fields = all
end
local malformed = ProtoExpert.new("ethermem.malformed", "no packet of this format",
                                  expert.group.MALFORMED, expert.severity.ERROR)
ethermem.experts = { malformed }

-- What a node without leases says: as many ms as its clock could ever count, 2^64 ns.
local NO_LEASE_MS = UInt64(0xf7a0b5ed, 0x10c6)

-- Adds a little-endian number, and gives where the next field begins.
local function add(tree, name, octets, buffer, at)
    local item = tree:add_le(fields[name .. octets], buffer(at, octets))
    if name == "lease_ms" and buffer(at, octets):le_uint64() >= NO_LEASE_MS then
        item:set_text("lease_ms: none: processes live until they are ended")
    end
    return at + octets
end

-- Whether all of the body is where it should be.
local function add_body(tree, body, buffer, at, last)
    for _, field in ipairs(body) do
        local name, octets = field[1], field[2]
        if octets == "rest" then
            if last > at then tree:add(fields[name], buffer(at, last - at)) end
            at = last
        elseif octets == "rest_numbers" then
            while at + 8 <= last do
                tree:add_le(fields[name], buffer(at, 8))
                at = at + 8
            end
        elseif octets == "counted" then
            local count = buffer(at - 1, 1):uint()
            if at + count > last then return false end
            if count > 0 then tree:add(fields[name], buffer(at, count)) end
            at = at + count
        else
            if at + octets > last then return false end
            at = add(tree, name, octets, buffer, at)
        end
    end
    return at == last
end

-- A packet at `at`; its name and where it ends, or nothing where there is none.
local function add_packet(tree, buffer, at, last)
    if at + 4 > last then return nil end
    local opcode, bytes = buffer(at, 1):uint(), buffer(at + 2, 2):le_uint()
    local is_answer = opcode >= ANSWER
    local front = is_answer and RESPONSE_BYTES or REQUEST_BYTES
    local row = OPCODES[opcode % ANSWER]
    if row == nil or bytes < front or at + bytes > last then return nil end
    local name = row[1] .. (is_answer and " answer" or "")
    local packet = tree:add(ethermem, buffer(at, bytes), name)
    packet:add(fields.opcode, buffer(at, 1), row[1])
    packet:add(fields.answer, buffer(at, 1), is_answer)
    add(packet, "attempt", 1, buffer, at + 1)
    add(packet, "packet_bytes", 2, buffer, at + 2)
    local body = row[2]
    if is_answer then
        local status = buffer(at + 4, 1):uint()
        add(packet, "status", 1, buffer, at + 4)
        add(packet, "request", 8, buffer, at + 8)
        body = status > 1 and { { "detail", 8 } } or row[3]
    else
        add(packet, "process", 4, buffer, at + 4)
        add(packet, "request", 8, buffer, at + 8)
        add(packet, "acknowledged", 8, buffer, at + 16)
    end
    if not add_body(packet, body, buffer, at + front, at + bytes) then
        packet:add_proto_expert_info(malformed)
    end
    return name, at + bytes
end

function ethermem.dissector(buffer, info, root)
    local octets = buffer:len()
    if octets < ENVELOPE_BYTES or buffer(0, 1):uint() ~= 1 then return 0 end
    local protection = buffer(1, 1):uint()
    local trailer = TRAILER_BYTES[protection]
    if trailer == nil or octets < ENVELOPE_BYTES + trailer then return 0 end
    info.cols.protocol = "ethermem"
    local tree = root:add(ethermem, buffer())
    local at = 0
    for _, field in ipairs({ { "version", 1 }, { "protection", 1 }, { "tenant", 2 },
                             { "epoch", 4 }, { "sender", 8 }, { "sequence", 8 },
                             { "clock_ns", 8 } }) do
        at = add(tree, field[1], field[2], buffer, at)
    end
    local last = octets - trailer
    if trailer > 0 then tree:add(fields.check, buffer(last, trailer)) end
    if protection == 2 then
        if last > at then tree:add(fields.encrypted, buffer(at, last - at)) end
        info.cols.info = "encrypted, " .. (last - at) .. " B"
        return octets
    end
    local names = {}
    while at < last do
        local name, next_at = add_packet(tree, buffer, at, last)
        if name == nil then
            tree:add_proto_expert_info(malformed)
            break
        end
        names[#names + 1], at = name, next_at
    end
    info.cols.info = table.concat(names, ", ")
    return octets
end

DissectorTable.get("udp.port"):add(PORT, ethermem)

-- Raw Ethernet: what stands between a frame's addresses and its datagram.
local ETHER_TYPE, FRAME_BYTES, PIECE_BYTES = 0x88b5, 24, 8
local FRAME_MARK = 0x6501
local KINDS = { [0] = "datagram", "piece", "question", "answer" }

local frame = Proto("ethermem_frame", "ethermem raw Ethernet")
local in_frame = {
    mark = ProtoField.uint16("ethermem_frame.mark", "mark and version", base.HEX),
    kind = ProtoField.uint8("ethermem_frame.kind", "kind", base.DEC, KINDS),
    bytes = ProtoField.uint16("ethermem_frame.bytes", "bytes"),
    carries = ProtoField.uint16("ethermem_frame.carries", "carries"),
    to_port = ProtoField.uint64("ethermem_frame.to_port", "to port"),
    from_port = ProtoField.uint64("ethermem_frame.from_port", "from port"),
    number = ProtoField.uint32("ethermem_frame.number", "number"),
    index = ProtoField.uint8("ethermem_frame.index", "index"),
    count = ProtoField.uint8("ethermem_frame.count", "count"),
    total = ProtoField.uint16("ethermem_frame.total", "total"),
    piece = ProtoField.bytes("ethermem_frame.piece", "piece"),
}
frame.fields = in_frame
local cut_off = ProtoExpert.new("ethermem_frame.malformed", "no frame of this format",
                                expert.group.MALFORMED, expert.severity.ERROR)
frame.experts = { cut_off }

function frame.dissector(buffer, info, root)
    local octets = buffer:len()
    if octets < FRAME_BYTES or buffer(0, 2):uint() ~= FRAME_MARK then return 0 end
    info.cols.protocol = "ethermem"
    local tree = root:add(frame, buffer(0, FRAME_BYTES))
    local kind, bytes = buffer(2, 1):uint(), buffer(4, 2):le_uint()
    tree:add(in_frame.mark, buffer(0, 2))
    tree:add(in_frame.kind, buffer(2, 1))
    tree:add_le(in_frame.bytes, buffer(4, 2))
    tree:add_le(in_frame.carries, buffer(6, 2))
    tree:add_le(in_frame.to_port, buffer(8, 8))
    tree:add_le(in_frame.from_port, buffer(16, 8))
    info.cols.info = KINDS[kind] or "unknown"
    local at = FRAME_BYTES + (kind == 1 and PIECE_BYTES or 0)
    if KINDS[kind] == nil or at + bytes > octets then
        tree:add_proto_expert_info(cut_off)
        return octets
    end
    if kind == 1 then
        tree:add_le(in_frame.number, buffer(24, 4))
        tree:add(in_frame.index, buffer(28, 1))
        tree:add(in_frame.count, buffer(29, 1))
        tree:add_le(in_frame.total, buffer(30, 2))
        if bytes > 0 then tree:add(in_frame.piece, buffer(at, bytes)) end
        info.cols.info = string.format("piece %d of %d, %d B", buffer(28, 1):uint() + 1,
                                       buffer(29, 1):uint(), bytes)
    elseif kind == 0 and bytes > 0 then
        -- What follows fills a frame that would be too short.
        ethermem.dissector:call(buffer(at, bytes):tvb(), info, root)
    end
    return octets
end

DissectorTable.get("ethertype"):add(ETHER_TYPE, frame)

-- Frames of CXL over Ethernet: docs/internals/cxl-wire.md. The table: golden/wire/cxl_formats.csv.
local CXL_ETHER_TYPE, LINE_BYTES = 0x88b6, 64
local HEAD = { { "sequence", 4 }, { "id", 1 } }
local REQUEST = { HEAD[1], HEAD[2], { "line", 5 } }
local RESPONSE = { HEAD[1], HEAD[2], { "status", 1 } }
local NEGATIVE = { { "nak", 4 }, { "sack", 4 } }
local CXL_STATUSES = { [0] = "Ok", "Unmapped", "Poison" }
local READ_RESPONSE = 0x81

-- A command's name and lists of fields; "data" is a line.
local CXL_COMMANDS = {
    [0x01] = { "read_request", REQUEST },
    [0x02] = { "write_request", REQUEST, { { "data", LINE_BYTES } } },
    [0x03] = { "masked_write_request", REQUEST, { { "mask", 8 }, { "data", LINE_BYTES } } },
    [0x81] = { "read_response", RESPONSE, { { "data", LINE_BYTES } } },
    [0x82] = { "write_response", RESPONSE },
    [0x83] = { "sack_nak", NEGATIVE },
    [0x84] = { "sack_nak_ack", NEGATIVE, { { "acked", 1 } }, RESPONSE },
    [0x85] = { "congestion", { { "number", 4 }, { "entries", 2 } } },
}
local CXL_NAMES = {}
for command, row in pairs(CXL_COMMANDS) do CXL_NAMES[command] = row[1] end

local cxl = Proto("ethermem_cxl", "ethermem CXL over Ethernet")
local in_cxl = {
    command = ProtoField.uint8("ethermem_cxl.command", "command", base.HEX, CXL_NAMES),
    sequence = ProtoField.uint32("ethermem_cxl.sequence", "sequence"),
    id = ProtoField.uint8("ethermem_cxl.id", "id"),
    line = ProtoField.uint64("ethermem_cxl.line", "line", base.HEX),
    mask = ProtoField.uint64("ethermem_cxl.mask", "mask", base.HEX),
    data = ProtoField.bytes("ethermem_cxl.data", "data"),
    status = ProtoField.uint8("ethermem_cxl.status", "status", base.DEC, CXL_STATUSES),
    nak = ProtoField.uint32("ethermem_cxl.nak", "nak"),
    sack = ProtoField.uint32("ethermem_cxl.sack", "sack"),
    acked = ProtoField.uint8("ethermem_cxl.acked", "acked", base.HEX, CXL_NAMES),
    number = ProtoField.uint32("ethermem_cxl.number", "number"),
    entries = ProtoField.uint16("ethermem_cxl.entries", "entries"),
}
cxl.fields = in_cxl
local cxl_malformed = ProtoExpert.new("ethermem_cxl.malformed", "no packet of this format",
                                      expert.group.MALFORMED, expert.severity.ERROR)
cxl.experts = { cxl_malformed }

-- Adds fields from `at` on; where the next one begins, or nothing where the frame ends before.
local function add_cxl(tree, list, buffer, at)
    for _, field in ipairs(list) do
        local name, octets = field[1], field[2]
        if at + octets > buffer:len() then return nil end
        if name == "data" then
            tree:add(in_cxl.data, buffer(at, octets))
        else
            tree:add_le(in_cxl[name], buffer(at, octets))
        end
        at = at + octets
    end
    return at
end

-- What a packet says in one line.
local function cxl_summary(buffer, command)
    local number = function(at) return buffer(at, 4):le_uint() end
    local text = CXL_NAMES[command]
    if command < 0x80 then
        return string.format("%s %u, line 0x%s", text, number(1), buffer(6, 5):le_uint64():tohex())
    elseif command == 0x83 or command == 0x84 then
        return string.format("%s: %u is missing, %u came", text, number(1), number(5))
    elseif command == 0x85 then
        return string.format("%s: %u entries", text, buffer(5, 2):le_uint())
    end
    return string.format("%s %u: %s", text, number(1), CXL_STATUSES[buffer(6, 1):uint()] or "?")
end

function cxl.dissector(buffer, info, root)
    local octets = buffer:len()
    if octets < 1 then return 0 end
    info.cols.protocol = "ethermem CXL"
    local command = buffer(0, 1):uint()
    local row = CXL_COMMANDS[command]
    local tree = root:add(cxl, buffer())
    tree:add(in_cxl.command, buffer(0, 1))
    local at = row and 1
    for part = 2, row and #row or 0 do
        at = at and add_cxl(tree, row[part], buffer, at)
    end
    if at and command == 0x84 and buffer(9, 1):uint() == READ_RESPONSE then
        at = add_cxl(tree, { { "data", LINE_BYTES } }, buffer, at)
    end
    if not at then
        tree:add_proto_expert_info(cxl_malformed)
        info.cols.info = "malformed"
        return octets
    end
    info.cols.info = cxl_summary(buffer, command)
    return octets
end

DissectorTable.get("ethertype"):add(CXL_ETHER_TYPE, cxl)
